package bench

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What has opened a store may end while its watchers are counted.
func TestFootprint_HasNoFewerGoroutinesThanNone(t *testing.T) {
	before := memory{bytes: 1000, goroutines: 20}
	for now, want := range map[int64]float64{19: 0, 20: 0, 40: 2} {
		goroutines, measured := memory{bytes: 1000, goroutines: now}.per(before, 10).Get(GoroutinesPerWatcher)
		require.True(t, measured)
		require.InDelta(t, want, goroutines.Value, 1e-9)
	}
}
