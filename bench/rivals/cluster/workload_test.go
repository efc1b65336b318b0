package cluster_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/watchmill/watchmill/bench"
	"github.com/watchmill/watchmill/bench/rivals/cluster"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Each workload runs, measures what its goals are about, and leaves nothing running.
func TestWorkloads_MeasureWhatTheirGoalsAreAbout(t *testing.T) {
	for _, w := range cluster.Workloads() {
		t.Run(w.ID, func(t *testing.T) {
			ours, err := w.Run(t.Context(), bench.Watchmill(), w.Small)
			require.NoError(t, err)
			for _, goal := range w.Goals {
				_, measured := ours.Get(goal.Metric)
				require.True(t, measured, goal.Metric)
			}
			floor, err := w.Floor(t.Context(), w.Small)
			require.NoError(t, err)
			for _, result := range []bench.Result{ours, floor} {
				writes, measured := result.Get(bench.Writes)
				require.True(t, measured)
				require.Positive(t, writes.Value)
			}
		})
	}
}
