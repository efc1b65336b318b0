package bench_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/bench"
)

// Every workload runs, watchmill loses no events in any, and the floor measures something
// that watchmill can be compared with.
func TestWorkloads_LoseNothingAndHaveAFloor(t *testing.T) {
	for _, w := range bench.All() {
		t.Run(w.ID, func(t *testing.T) {
			ours, err := w.Run(t.Context(), bench.Watchmill(), w.Small)
			require.NoError(t, err)
			requireFinite(t, ours)
			for _, name := range []string{bench.Lost, bench.LostWatches, bench.StalledLost, bench.ForceClosed} {
				if m, ok := ours.Get(name); ok {
					require.Zero(t, m.Value, name)
				}
			}
			floor, err := w.Floor(t.Context(), w.Small)
			require.NoError(t, err)
			requireFinite(t, floor)
			requireGoals(t, w, ours, floor)
			require.True(t, slices.ContainsFunc(floor, func(m bench.Metric) bool {
				_, measured := ours.Get(m.Name)
				return measured
			}), "%v and %v have no metric in common", ours, floor)
		})
	}
}

// requireFinite requires metrics, each with a finite figure that is not negative.
func requireFinite(t *testing.T, r bench.Result) {
	require.NotEmpty(t, r)
	for _, m := range r {
		require.False(t, math.IsInf(m.Value, 0) || math.IsNaN(m.Value), m.Name)
		require.GreaterOrEqual(t, m.Value, 0.0, m.Name)
	}
}

// requireGoals requires a figure for each metric with a goal, a positive one if the goal is
// relative to a rival or the floor, and the floor's if it is relative to that.
func requireGoals(t *testing.T, w bench.Workload, ours, floor bench.Result) {
	for _, goal := range w.Goals {
		m, ok := ours.Get(goal.Metric)
		require.True(t, ok, "goal about %q, which is not measured", goal.Metric)
		if _, ok := floor.Get(goal.Metric); goal.To == bench.ToFloor {
			require.True(t, ok, "goal about %q, which the floor does not measure", goal.Metric)
		}
		if goal.To != bench.ToOne {
			require.Positive(t, m.Value, goal.Metric)
		}
	}
}
