package load

import "runtime"

// goroutines returns the number of goroutines, without those that have ended; the
// runtime's finalizer goroutine counts while it runs. [runtime.NumGoroutine] adds up
// counters while they change, and still counts a goroutine that has ended until its thread
// has freed it, which may be late on a busy machine. A goroutine profile counts while the
// world is stopped.
func goroutines() int {
	for room := runtime.NumGoroutine() + 1; ; room *= 2 {
		if n, all := runtime.GoroutineProfile(make([]runtime.StackRecord, room)); all {
			return n
		}
	}
}
