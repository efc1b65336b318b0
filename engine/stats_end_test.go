package engine_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
)

// running are the gauges of watches.
type running struct{ watches, streams, stalled int64 }

func runningOf(s engine.Stats) running { return running{s.Watches, s.Streams, s.Stalled} }

func TestStats_OfAClosedEngineHaveNoWatches(t *testing.T) {
	for _, noCache := range []bool{false, true} {
		t.Run(fmt.Sprintf("NoCache=%v", noCache), func(t *testing.T) {
			f := newFixture(t, func(_ *engine.HostConfig, c *engine.Config[thing]) { c.NoCache = noCache })
			for _, labels := range []string{"", "app=web", "app in (web)"} {
				f.watch(engine.WatchOptions{Labels: labels, Buffer: 1})
			}
			for range 10 {
				f.put("a")
			}
			before := runningOf(f.engine.Stats())
			require.Equal(t, [2]int64{3, 3}, [2]int64{before.watches, before.stalled})
			require.NoError(t, f.engine.Close())
			require.Zero(t, runningOf(f.engine.Stats()))
		})
	}
}

func TestNoCache_StatsForgetAWatchThatIsStoppedWhileItReads(t *testing.T) {
	for seed := range uint64(50) {
		host := newHost(t, engine.HostConfig{Clock: enginetest.NewVirtualClock(), Executor: engine.NewSeededExecutor(seed)})
		config := cfg()
		config.Host, config.NoCache = host, true
		e, err := engine.New(config)
		require.NoError(t, err)
		w, err := e.Watch(t.Context(), engine.WatchOptions{Labels: "app=web"})
		require.NoError(t, err)
		_, err = e.Create(t.Context(), pod{Name: "a", App: "web"})
		require.NoError(t, err)
		w.Stop()
		require.ErrorIs(t, host.Await(t.Context(), nil), engine.ErrIdle)
		require.Zero(t, runningOf(e.Stats()), "seed %d", seed)
		require.NoError(t, e.Close())
	}
}

func TestNoCache_StatsCountEachStalledWatch(t *testing.T) {
	f := newFixture(t, func(_ *engine.HostConfig, c *engine.Config[thing]) { c.NoCache = true })
	first, second := f.watch(engine.WatchOptions{Buffer: 1}), f.watch(engine.WatchOptions{Buffer: 1})
	for range 10 {
		f.put("a")
	}
	require.Equal(t, int64(2), f.engine.Stats().Stalled)
	_, end := f.read(first)
	require.NoError(t, end)
	require.Equal(t, int64(1), f.engine.Stats().Stalled)
	second.Stop()
	f.executor.Run()
	require.Zero(t, f.engine.Stats().Stalled)
}
