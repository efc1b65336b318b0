package compare

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/bench"
)

const (
	statBefore = "cpu  1000 0 500 8000 100 0 50 50 0 0\ncpu0 1 2\n"
	statAfter  = "cpu  1100 0 550 8030 100 0 50 70 0 0\ncpu0 1 2\n"
	selfBefore = "42 (a (strange) name) S 1 1 1 0 -1 0 0 0 0 0 600 100 10 0 20 0 9 0\n"
	selfAfter  = "42 (a (strange) name) S 1 1 1 0 -1 0 0 0 0 0 680 120 20 0 20 0 9 0\n"
)

// What others had is what programs had without us, and what other machines took.
func TestDisturbance_IsWhatOthersHad(t *testing.T) {
	before, ok := parseTicks(statBefore, selfBefore)
	require.True(t, ok)
	after, ok := parseTicks(statAfter, selfAfter)
	require.True(t, ok)
	// 200 in all, of which 150 busy, 110 of them ours, and 20 stolen.
	require.InDelta(t, 0.3, after.taken(before), 1e-9)
	require.Zero(t, before.taken(before))
	for _, broken := range []string{"", "cpu 1 2", "cpu a b c d e f g h", "intr 1 2 3 4 5 6 7 8 9"} {
		_, ok := parseTicks(broken, selfBefore)
		require.False(t, ok, broken)
	}
	_, ok = parseTicks(statBefore, "42 (cut) S 1")
	require.False(t, ok)
}

// planOf runs rounds of which others have had these shares.
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
	require.Equal(t, "Disturbed: in 1 of 1 rounds others had up to 20 % of the processors", report.Workloads[0].disturbance())
}
