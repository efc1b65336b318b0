package load

import "runtime"

// goroutines returns how many goroutines there are. [runtime.NumGoroutine] adds up
// counters while others change them, and a goroutine that has ended is still in one of
// them until its thread has put it away, which the scheduler of the machine may delay;
// a profile counts while the world is stopped.
func goroutines() int {
	for room := runtime.NumGoroutine() + 1; ; room *= 2 {
		if n, all := runtime.GoroutineProfile(make([]runtime.StackRecord, room)); all {
			return n
		}
	}
}
