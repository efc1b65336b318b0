package load

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// In a bubble time passes as soon as all goroutines wait or have ended, so one that
// has just ended must not be counted any more. The runtime's own goroutine that runs
// finalizers is counted while it does, which happens in few rounds; runtime.NumGoroutine
// is late in hundreds.
func TestGoroutines_ThatHaveEndedAreNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, late := goroutines(), 0
		for range 5000 {
			for range 5 {
				go func() {}()
			}
			time.Sleep(time.Millisecond)
			if goroutines() > before { // it is fewer if goroutines from before the test have ended
				late++
			}
		}
		require.Less(t, late, 50)
	})
}
