package load

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// A lower value that is recorded later does not replace a higher one.
func TestRaise_KeepsTheHighestValue(t *testing.T) {
	for range 100 {
		var most atomic.Uint64
		var looking sync.WaitGroup
		for by := range uint64(4) {
			looking.Go(func() {
				for n := range uint64(100) {
					raise(&most, 4*n+by)
				}
			})
		}
		looking.Wait()
		require.Equal(t, uint64(399), most.Load())
	}
}
