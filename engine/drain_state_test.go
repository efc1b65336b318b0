package engine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
)

// A loop that was left at the end of the initial state has been given everything.
func TestDrain_WaitsForNoLoopThatWasLeftAtTheEndOfItsInitialState(t *testing.T) {
	for _, policy := range []engine.Policy{engine.Park, engine.Conflate} {
		t.Run(policy.String(), func(t *testing.T) {
			f := newFixture(t, nil)
			f.put("a")
			w := f.watch(engine.WatchOptions{InitialState: true, Bookmarks: true, Policy: policy})
			for ev, err := range w.Events() {
				require.NoError(t, err)
				if ev.Is(engine.InitialEnd) {
					break
				}
			}
			f.pass(time.Second)
			require.Zero(t, w.Behind())
			require.NoError(t, f.engine.Drain(t.Context()))
			require.ErrorIs(t, w.Err(), engine.ErrEngineClosed)
		})
	}
}

func TestBehind_IsTheAgeOfAWatchWhoseInitialStateIsInHand(t *testing.T) {
	f := newFixture(t, nil)
	f.put("a")
	w := f.watch(engine.WatchOptions{InitialState: true})
	for range w.Events() {
		f.pass(time.Second)
		require.Equal(t, time.Second, w.Behind())
		break
	}
	var late *engine.UndeliveredError
	require.ErrorAs(t, f.engine.Drain(t.Context()), &late)
	require.Equal(t, []engine.Undelivered{{Name: w.Name(), Initial: true}}, late.Watches)
}
