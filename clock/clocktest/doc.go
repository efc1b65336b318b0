// Package clocktest has clocks for tests: [Failing], which fails when it is told to, as a user's
// clock may, and [Counting], which counts timers.
//
//	Fail(Now, after, times)
//	           │
//	code ──▶ Failing.Now ──after that many calls──▶ panics, that many times
//	           └──otherwise──▶ the clock below it
//
// [SetWall] makes the times that the real clock gives once the machine's clock has been set. [Tick] waits
// until the machine's clock shows another time.
package clocktest
