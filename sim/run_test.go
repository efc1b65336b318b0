package sim_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/sim"
	"github.com/watchmill/watchmill/sim/scenario"
)

func TestRun_RefusesAnInvalidScenario(t *testing.T) {
	_, err := sim.Run(t.Context(), &scenario.Scenario{Duration: -1}, sim.RunOptions{})
	require.ErrorIs(t, err, scenario.ErrInvalid)
}

func TestRun_TakesSizeAndSeedFromItsOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scenario.Scenario{Name: "s", Watchers: []scenario.Watcher{{}}}
		rep, err := sim.Run(t.Context(), s, sim.RunOptions{Resolve: scenario.Options{Seed: 7, Small: true, Duration: 10 * time.Millisecond}})
		require.NoError(t, err)
		require.Equal(t, uint64(7), rep.Seed)
		require.True(t, rep.Small)
		require.Equal(t, 0.010, rep.Load)
	})
}
