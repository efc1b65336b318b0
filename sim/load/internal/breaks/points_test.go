package breaks_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/watchmill/watchmill/sim/load/internal/breaks"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// steps are how many progresses draw tries.
const steps = 1000

// draw returns the steps at which points are due, and removes these.
func draw(p *breaks.Points) (at []int) {
	for step := range steps {
		for p.Due(float64(step) / steps) {
			at = append(at, step)
		}
	}
	for p.Due(1) {
		at = append(at, steps)
	}
	return at
}

func TestPoints_AreSpreadOverTheWholeHistory(t *testing.T) {
	const n, rounds = 5, 2000
	quarters := [4]int{}
	for seed := range uint64(rounds) {
		p := breaks.New(seed, 1, n)
		all := draw(&p)
		require.Len(t, all, n)
		for _, step := range all {
			quarters[min(step*4/steps, 3)]++
		}
	}
	for _, q := range quarters {
		require.InDelta(t, n*rounds/4, q, n*rounds/40, "uniform: %v", quarters)
	}
}

func TestPoints_AreTheConsumersOwn(t *testing.T) {
	first, same, other := breaks.New(1, 1, 5), breaks.New(1, 1, 5), breaks.New(1, 2, 5)
	all := draw(&first)
	require.Equal(t, all, draw(&same), "the same ones again")
	require.NotEqual(t, all, draw(&other), "each consumer has points of its own")
}

// A replay that is continued goes on with the points that are left.
func TestPoints_SkipRemovesTheFirst(t *testing.T) {
	whole, rest, none := breaks.New(1, 1, 5), breaks.New(1, 1, 5), breaks.New(1, 1, 5)
	rest.Skip(2)
	require.Equal(t, draw(&whole)[2:], draw(&rest))
	none.Skip(7)
	require.Empty(t, draw(&none))
	require.False(t, (&breaks.Points{}).Due(1))
}
