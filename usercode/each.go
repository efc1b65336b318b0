package usercode

// Each calls f with each item, in order, including those behind one for which f panics or ends
// its goroutine, as t.FailNow does. The panic, or the end of the goroutine, comes after the last
// item.
func Each[T any](items []T, f func(T)) {
	next := 0
	defer func() {
		if next < len(items) {
			Each(items[next:], f)
		}
	}()
	for next < len(items) {
		item := items[next]
		next++
		f(item)
	}
}
