package bench_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/bench"
)

// Every workload runs, and watchmill loses no events in any.
func TestWorkloads_RunAndLoseNothing(t *testing.T) {
	for _, w := range bench.All() {
		t.Run(w.ID, func(t *testing.T) {
			ours, err := w.Run(t.Context(), bench.Watchmill(), w.Small)
			require.NoError(t, err)
			requireSane(t, w, ours)
			for _, name := range []string{bench.Lost, bench.LostWatches, bench.StalledLost, bench.ForceClosed} {
				if m, ok := ours.Get(name); ok {
					require.Zero(t, m.Value, name)
				}
			}
		})
	}
}

// Every floor measures something that the workload does too.
func TestFloors_MeasureSomething(t *testing.T) {
	for _, w := range bench.All() {
		t.Run(w.ID, func(t *testing.T) {
			floor, err := w.Floor(t.Context(), w.Small)
			require.NoError(t, err)
			require.NotEmpty(t, floor)
			for _, m := range floor {
				require.GreaterOrEqual(t, m.Value, 0.0, m.Name)
				require.False(t, math.IsInf(m.Value, 0) || math.IsNaN(m.Value), m.Name)
			}
		})
	}
}

// requireSane requires a finite figure for each metric, and a positive one for each metric
// with a goal that is relative to a rival or the floor.
func requireSane(t *testing.T, w bench.Workload, r bench.Result) {
	require.NotEmpty(t, r)
	for _, m := range r {
		require.False(t, math.IsInf(m.Value, 0) || math.IsNaN(m.Value), m.Name)
		require.GreaterOrEqual(t, m.Value, 0.0, m.Name)
	}
	for _, goal := range w.Goals {
		m, ok := r.Get(goal.Metric)
		require.True(t, ok, "goal about %q, which is not measured", goal.Metric)
		if goal.To != bench.ToOne {
			require.Positive(t, m.Value, goal.Metric)
		}
	}
}
