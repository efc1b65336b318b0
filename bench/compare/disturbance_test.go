package compare

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/bench"
)

// planOf returns a plan whose rounds have these shares of other programs, and the number of
// rounds that were run.
func planOf(shares ...float64) (plan Plan, runs *int) {
	runs = new(int)
	return Plan{
		Rounds: 1, Ours: bench.Contender{Name: "us"},
		Others: func() func() float64 {
			share := shares[0]
			shares = shares[1:]
			return func() float64 { return share }
		},
		Workloads: []bench.Workload{{
			ID: "W0", Text: "nothing",
			Run: func(context.Context, bench.Contender, bench.Params) (bench.Result, error) {
				*runs++
				return bench.Result{{Name: "run", Value: float64(*runs)}}, nil
			},
			Floor: func(context.Context, bench.Params) (bench.Result, error) { return nil, nil },
		}},
	}, runs
}

func TestDisturbance_RepeatsARound(t *testing.T) {
	plan, runs := planOf(0.4, 0.01)
	report, err := Run(t.Context(), plan)
	require.NoError(t, err)
	require.Equal(t, 2, *runs)
	require.EqualValues(t, 2, report.Workloads[0].Rounds[0].Ours[0].Value)
	require.Empty(t, report.Workloads[0].disturbance())
}

// A round that stays disturbed is the least disturbed of its runs, and is marked.
func TestDisturbance_ThatStaysIsMarked(t *testing.T) {
	plan, runs := planOf(0.4, 0.2, 0.3)
	report, err := Run(t.Context(), plan)
	require.NoError(t, err)
	require.Equal(t, 1+maxRepeats, *runs)
	require.EqualValues(t, 2, report.Workloads[0].Rounds[0].Ours[0].Value)
	require.Equal(t, "Disturbed: in 1 of 1 rounds other programs used up to 20 % of the processors", report.Workloads[0].disturbance())
}
