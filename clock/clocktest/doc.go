// Package clocktest has a clock for tests that fails when it is told to, as a user's clock
// may.
//
//	Fail(Now, after, times)
//	           │
//	code ──▶ Failing.Now ──after so many calls──▶ panics, so many times
//	           └──otherwise──▶ the clock below it
//
// [SetWall] makes the times that the real clock gives once the machine's clock has been set.
package clocktest
