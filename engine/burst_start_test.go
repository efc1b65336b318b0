package engine_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/engine"
)

// However many writes come between the steps in which an engine starts, it goes on at once: no
// history is gone that it still has to read, so nothing waits for the time to pass, which here
// stands still, and no event is lost.
func TestNew_BurstsWhileItStartsAreAllSeenAtOnce(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 7))
		executor := actors.NewSeeded(seed)
		host, err := engine.NewHost(engine.HostConfig{Clock: clock.NewVirtual(time.Unix(1e9, 0)), Executor: singleStepping{executor}, Seed: seed + 1})
		require.NoError(t, err)
		c := cfg()
		c.Host = host
		e, err := engine.New(c)
		require.NoError(t, err)
		ctx, written := t.Context(), 0
		for range 1 + rng.IntN(12) {
			for range rng.IntN(1500) {
				written++
				if rng.IntN(2) == 0 {
					_, err = e.Put(ctx, pod{Name: "a", N: written})
				} else {
					_, err = e.Emit(ctx, pod{Name: "b", N: written})
				}
				require.NoError(t, err)
			}
			executor.RunN(rng.IntN(4))
		}
		list, err := e.List(ctx, engine.ListOptions{})
		require.NoError(t, err, "seed %d: %+v", seed, e.Stats().Source)
		require.Equal(t, engine.Revision(1+written), list.Revision)
		w, err := e.Watch(ctx, engine.WatchOptions{From: 1})
		require.NoError(t, err)
		for seen := 0; seen < written; {
			events, err := w.Next(ctx)
			require.NoError(t, err)
			seen += len(events)
		}
		require.Zero(t, e.Stats().Unseen)
		require.Zero(t, e.Stats().Relists)
		w.Stop()
		require.NoError(t, e.Close())
		require.NoError(t, host.Close())
	}
}
