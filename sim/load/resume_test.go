package load

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/scenario"
)

// started returns a run of the scenario without load.
func started(t *testing.T, s *scenario.Scenario) *run {
	t.Helper()
	plan, err := s.Resolve(scenario.Options{})
	require.NoError(t, err)
	r := &run{plan: plan, watch: newStopwatch(), clock: &jumpClock{}, policies: policies()}
	r.goroutines[0] = runtime.NumGoroutine()
	require.NoError(t, r.start())
	t.Cleanup(func() { require.NoError(t, r.close()) })
	return r
}

// create creates the nth object and returns its revision, which the engine has.
func create(t *testing.T, r *run, n int) engine.Revision {
	t.Helper()
	o, err := r.engine.Create(t.Context(), content.NewMaker(&r.plan.Objects, 1, 0).Object(n))
	require.NoError(t, err)
	require.NoError(t, r.engine.WaitFor(t.Context(), o.Revision))
	return o.Revision
}

// An event that is stored while a watcher is trying to come back is late by what
// that takes: else an engine would look the better the longer it lets watchers
// wait.
func TestLatencyCountsFromWhenAWatcherWantsToWatch(t *testing.T) {
	r := started(t, &scenario.Scenario{Watchers: []scenario.Watcher{{}}})
	w := r.groups[0].all[0]
	w.trail.Begin(create(t, r, 0))
	create(t, r, 1) // while it is away
	w.want()
	create(t, r, 2) // while its watch is being opened
	watch, err := w.open(t.Context())
	require.NoError(t, err)
	for w.delivered.Load() < 2 {
		events, err := watch.Next(t.Context())
		require.NoError(t, err)
		w.take(events...)
	}
	w.leave(watch)
	require.Equal(t, int64(1), w.measured)
}
