package bench_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/bench"
)

// Linux always limits a process's files.
func TestBurst_SaysHowManyFilesItNeeds(t *testing.T) {
	workloads, err := bench.Select([]string{"W25"})
	require.NoError(t, err)
	for _, w := range workloads {
		p := w.Full
		p.Watchers = math.MaxInt
		_, err := w.Run(t.Context(), bench.Watchmill(), p)
		require.ErrorContains(t, err, "file descriptors")
		require.ErrorContains(t, err, "ulimit -n")
	}
}
