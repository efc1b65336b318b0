package clocktest

import (
	"runtime"
	"time"
)

// Tick returns once the machine's clock shows another time than at the call. That is at once
// on most systems, and takes up to 16 ms on Windows, whose clock shows one time for as long: what is
// measured within that has taken no time. It does not return in a bubble of testing/synctest.
func Tick() {
	for began := time.Now(); time.Since(began) == 0 || time.Now().Round(0).Equal(began.Round(0)); {
		runtime.Gosched()
	}
}
