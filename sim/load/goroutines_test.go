package load

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// In a bubble time passes as soon as all goroutines wait or have ended, so one that
// has just ended must not be counted any more.
func TestGoroutines_ThatHaveEndedAreNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := goroutines()
		for range 5000 {
			for range 5 {
				go func() {}()
			}
			time.Sleep(time.Millisecond)
			require.LessOrEqual(t, goroutines(), before) // fewer if goroutines from before the test have ended
		}
	})
}
