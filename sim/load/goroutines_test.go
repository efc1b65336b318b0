package load

import (
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// In a bubble time passes as soon as all goroutines wait or have ended, so one that
// has just ended must not be counted any more; runtime.NumGoroutine counts it in hundreds of
// the rounds.
func TestGoroutines_ThatHaveEndedAreNotCounted(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	runFinalizers() // they are counted while they run, and without collections there are no others
	synctest.Test(t, func(t *testing.T) {
		before := goroutines()
		for range 5000 {
			for range 5 {
				go func() {}()
			}
			time.Sleep(time.Millisecond)
			require.LessOrEqual(t, goroutines(), before, "goroutines from before the test may end")
		}
	})
}

// runFinalizers runs those that are due. They run in no order, but before those of the next
// collection.
func runFinalizers() {
	for range 2 {
		var ran atomic.Bool
		runtime.SetFinalizer(new([64]byte), func(*[64]byte) { ran.Store(true) })
		for !ran.Load() {
			runtime.GC()
		}
	}
}
