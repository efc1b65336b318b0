package load

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/load/internal/timing"
	"github.com/watchmill/watchmill/sim/scenario"
)

// A watcher that cannot resume has failed, but not one that is stopped while it
// tries.
func TestWatcher_StoppedWhileItResumesHasNotFailed(t *testing.T) {
	r := &run{}
	attempt := func(ctx context.Context, err error) (again, failed bool) {
		w := &watcher{run: r, group: &watchers{spec: &scenario.Watcher{Name: "w"}}}
		return w.retry(ctx, err), w.failed
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	again, failed := attempt(stopped, stopped.Err())
	require.False(t, again)
	require.False(t, failed)
	require.Empty(t, r.failed.all())

	again, failed = attempt(t.Context(), engine.ErrEngineClosed)
	require.False(t, again)
	require.True(t, failed)
	require.Empty(t, r.failed.all())

	again, failed = attempt(t.Context(), errors.New("not now"))
	require.True(t, again)
	require.True(t, failed)
	require.Equal(t, []string{"w-0: not now"}, r.failed.all())
}

// newStartedRun returns a run of the scenario without load.
func newStartedRun(t *testing.T, s *scenario.Scenario) *run {
	t.Helper()
	plan, err := s.Resolve(scenario.Options{})
	require.NoError(t, err)
	r := &run{plan: plan, stopwatch: timing.NewStopwatch(), clock: &timing.Clock{}, before: allGoroutines()}
	require.NoError(t, r.start())
	t.Cleanup(func() { require.NoError(t, r.close()) })
	return r
}

// create creates the nth object and returns its revision, which the engine has.
func create(t *testing.T, r *run, n int) engine.Revision {
	t.Helper()
	o, err := r.engine.Create(t.Context(), content.NewMaker(&r.plan.Objects, 1, 0).Object(n))
	require.NoError(t, err)
	require.NoError(t, r.engine.WaitForRevision(t.Context(), o.Revision))
	return o.Revision
}

// A watch that conflates has no event for what has come and gone, and does not reach its revision by one.
func TestWatcher_LosesNothingThatCameAndWentBeforeItLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newStartedRun(t, &scenario.Scenario{
			Engine:   scenario.Engine{Window: 20},
			Watchers: []scenario.Watcher{{Policy: scenario.Conflate, Buffer: 10}},
		})
		w := r.groups[0].all[0]
		w.trail.Begin(create(t, r, 0))
		watch, err := w.open(t.Context())
		require.NoError(t, err)
		for n := range 100 {
			create(t, r, n+1)
			gone, err := r.engine.Delete(t.Context(), r.plan.Objects.Key(n+1), engine.DeleteOptions{})
			require.NoError(t, err)
			require.NoError(t, r.engine.WaitForRevision(t.Context(), gone.Revision))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for err = nil; err == nil; {
			var events []engine.Event[content.Item]
			events, err = watch.Next(ctx)
			w.take(events...)
		}
		require.ErrorIs(t, err, context.DeadlineExceeded, "no event ends the difference")
		require.Positive(t, watch.Lost())
		w.leave(watch)
		r.expect()
		w.trail.End()
		verdict := w.trail.Judge(r.expected, judge.Selection(w.sel))
		require.Zero(t, verdict.Lost)
		require.Nil(t, verdict.Failure)
	})
}

// An event that is stored while a watcher tries to resume is late by the time that
// this takes: otherwise an engine that makes watchers wait would look better.
func TestLatency_CountsFromWhenAWatcherWantsToWatch(t *testing.T) {
	r := newStartedRun(t, &scenario.Scenario{Watchers: []scenario.Watcher{{}}})
	w := r.groups[0].all[0]
	w.trail.Begin(create(t, r, 0))
	create(t, r, 1) // while the watcher is away
	w.beginConnecting()
	create(t, r, 2) // while its watch is being opened
	watch, err := w.open(t.Context())
	require.NoError(t, err)
	for w.delivered.Load() < 2 {
		events, err := watch.Next(t.Context())
		require.NoError(t, err)
		w.take(events...)
	}
	w.leave(watch)
	require.Equal(t, int64(1), w.latencyCount)
}

// What is stored while a watcher is away, since it wants to be, is not late.
func TestLatency_LeavesOutWhatWasStoredWhileAWatcherWasAway(t *testing.T) {
	const away = 5 * time.Millisecond
	for _, consumer := range []scenario.Consumer{scenario.Batches, scenario.Handler, scenario.Channel, scenario.Follow} {
		rep := inBubble(t, brief(t, &scenario.Scenario{
			Objects: scenario.Objects{Count: 10}, Writers: []scenario.Writer{{Rate: 10_000}},
			Watchers: []scenario.Watcher{{Consumer: consumer, Reconnect: scenario.Reconnect{Every: 2 * time.Millisecond, Away: away}}},
		}))
		w := rep.Groups[1]
		require.Positive(t, w.Reconnects)
		require.Positive(t, w.Measured)
		require.Less(t, w.Max, (away / 2).Seconds(), "%s", consumer)
		require.Less(t, uint64(w.Measured), w.Events, "%s", consumer)
	}
}

// The largest groups over the longest times are spread evenly, too.
func TestWatchers_StartOneAfterTheOther(t *testing.T) {
	for _, spec := range []scenario.Watcher{
		{Count: 4, Start: time.Second, Spread: 2 * time.Second},
		{Count: scenario.MaxWatchers, Start: time.Second, Spread: scenario.MaxDuration},
	} {
		g := &watchers{spec: &spec}
		for part := range 4 {
			w := &watcher{group: g, number: part * spec.Count / 4}
			require.Equal(t, spec.Start+time.Duration(part)*spec.Spread/4, w.starts())
		}
	}
}

// A watcher whose watch ends before its first event resumes from where it began.
func TestWatchers_LoseNothingBeforeTheirFirstEvent(t *testing.T) {
	for range 20 {
		rep := inBubble(t, brief(t, &scenario.Scenario{ // without objects, of which the engine would have to have the last
			Writers:  []scenario.Writer{{Rate: 1000, Mix: scenario.Mix{Emit: 1}, Start: time.Second}},
			Watchers: []scenario.Watcher{{Consumer: scenario.Handler}},
			Faults:   []scenario.Fault{{Kind: scenario.FaultPanic}},
		}))
		require.Equal(t, 1.0, rep.Metrics["panicked"])
		require.Zero(t, rep.Metrics["lost"])
	}
}

// Members of a group may have a selector that is too long, where that of the first is not.
func TestWatcher_ThatCanNeverWatchHasFailed(t *testing.T) {
	label := strings.Repeat("x", 61)
	for _, consumer := range []scenario.Consumer{scenario.Batches, scenario.Handler, scenario.Follow} {
		rep := inBubble(t, brief(t, &scenario.Scenario{
			Objects:  scenario.Objects{Count: 20, Labels: map[string]int{label: 12}},
			Writers:  []scenario.Writer{{Rate: 100}},
			Watchers: []scenario.Watcher{{Count: 12, Consumer: consumer, Labels: label + "={" + label + "}"}},
		}))
		require.Equal(t, 2.0, rep.Metrics["failed"], consumer)
		require.Equal(t, 2.0, rep.Metrics["unread"], consumer)
	}
}
