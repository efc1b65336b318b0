package dispatcher_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors/dispatcher"
	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/clock/clocktest"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/window"
)

func TestTimers_BookmarksGoOnAfterTheClockHasFailed(t *testing.T) {
	for _, call := range []clocktest.Call{clocktest.Now, clocktest.AfterFunc} {
		t.Run(string(call), func(t *testing.T) {
			f := newFixture(t)
			w := f.watch(watcher.Options{Bookmarks: true})
			f.write(2)
			f.has(w, 2)
			f.failing.Fail(call, 0, 1)
			f.pass(2 * time.Second) // a tick
			require.Zero(t, f.failing.Left(call))
			for range 2 * dispatcher.DefaultBookmarkPeriod / time.Second {
				f.pass(time.Second)
			}
			f.has(w, -2)
		})
	}
}

func TestTimers_DeadlinesAreMetAfterTheClockHasFailed(t *testing.T) {
	for _, call := range []clocktest.Call{clocktest.Now, clocktest.AfterFunc, clocktest.Stop} {
		t.Run(string(call), func(t *testing.T) {
			f := newFixture(t)
			first, second := f.watchFor(time.Minute), f.watchFor(2*time.Minute)
			f.failing.Fail(call, 0, 1)
			f.pass(time.Minute)
			require.Zero(t, f.failing.Left(call))
			f.pass(time.Second)
			require.ErrorIs(t, first.Err(), watcher.ErrDeadline)
			require.NoError(t, second.Err())
			f.pass(time.Minute)
			require.ErrorIs(t, second.Err(), watcher.ErrDeadline)
		})
	}
}

// The registration of the watch with the earliest deadline fails for want of a timer: the
// others keep theirs.
func TestTimers_AFailedRegistrationLeavesTheDeadlinesOfOthers(t *testing.T) {
	f := newFixture(t)
	w := f.watchFor(2 * time.Minute)
	f.failing.Fail(clocktest.AfterFunc, 0, 1)
	early, reply := watcher.New(&f.feed, watcher.Options{}), make(chan error, 1)
	f.ref.Tell(f.registration(early, reply, time.Minute))
	f.executor.Run()
	require.ErrorIs(t, <-reply, dispatcher.ErrFailed)
	f.pass(2 * time.Minute)
	require.ErrorIs(t, w.Err(), watcher.ErrDeadline)
}

// A clock that goes on failing is asked again with each message, and only that.
func TestTimers_NextMessageBringsAnotherTry(t *testing.T) {
	f := newFixture(t)
	w, timed := f.watch(watcher.Options{Bookmarks: true}), f.watchFor(time.Hour)
	f.failing.Fail(clocktest.AfterFunc, 0, 4)
	f.pass(2 * time.Second)
	require.Equal(t, 2, f.failing.Left(clocktest.AfterFunc), "once by the tick, and once after it")
	f.write(2)
	f.write(3)
	require.Zero(t, f.failing.Left(clocktest.AfterFunc))
	f.has(w, 2, 3)
	f.has(timed, 2, 3)
	f.write(4)
	f.has(w, 4)
	for range 2 * dispatcher.DefaultBookmarkPeriod / time.Second {
		f.pass(time.Second)
	}
	f.has(w, -4)
}

// A timer that cannot be armed after a round holds up neither the round's events nor
// the watches that wait for them.
func TestTimers_AFailureAfterARoundHoldsUpNoWatch(t *testing.T) {
	f := newFixture(t)
	told := 0
	snap := f.published.Load()
	w, reply := watcher.NewNotified(&f.feed, watcher.Options{}, func() { told++ }), make(chan error, 1)
	filter, err := store.NewFilter(nil, store.FilterOptions{Key: "a"})
	require.NoError(t, err)
	f.ref.Tell(dispatcher.Register{Watch: w.Member(), Filter: filter, Start: watcher.Start{Next: snap.Window.Next(), After: snap.Revision}, Snapshot: snap, Reply: reply})
	f.executor.Run()
	require.NoError(t, <-reply)
	taken, _, err := w.Take(10)
	require.NoError(t, err)
	require.Empty(t, taken, "it waits")
	f.failing.Fail(clocktest.AfterFunc, 0, 1) // that of the notifications of progress
	f.write(2)
	require.Zero(t, f.failing.Left(clocktest.AfterFunc))
	require.Equal(t, 1, told)
	taken, _, err = w.Take(10)
	require.NoError(t, err)
	require.Len(t, taken, 1)
}

func TestTimers_AWatchIsForgottenThoughTheClockFailsToStopItsTimer(t *testing.T) {
	f := newFixture(t)
	w := f.watchFor(time.Minute)
	f.failing.Fail(clocktest.Stop, 0, 1)
	w.Stop()
	f.executor.Run()
	require.Zero(t, f.failing.Left(clocktest.Stop))
	require.Zero(t, f.stats.Watches.Load())
	f.pass(time.Minute)
}

func TestTimers_WatchesEndThoughTheClockFailsToStopATimer(t *testing.T) {
	f := newFixture(t)
	w, told := f.watch(watcher.Options{Bookmarks: true}), 0
	source := watcher.NewNotified(&f.feed, watcher.Options{}, func() { told++ })
	f.admitThis(source, f.registration(source, nil, time.Minute))
	_, _, err := source.Take(1)
	require.NoError(t, err)
	require.Equal(t, 2, f.clock.Pending())
	f.failing.Fail(clocktest.Stop, 0, 1)
	f.ref.Stop()
	f.executor.Run()
	require.Zero(t, f.failing.Left(clocktest.Stop))
	require.Equal(t, 1, told)
	for _, one := range []*watcher.Watch{w, source} {
		require.ErrorIs(t, one.Err(), watcher.ErrEngineClosed)
	}
	require.Zero(t, f.stats.Watches.Load())
	require.Equal(t, 1, f.clock.Pending(), "it is asked to stop the other")
	f.pass(time.Minute)
}

// The clock fails when the dispatcher starts: what comes later does not depend on it.
func TestTimers_DispatcherGoesOnAfterAFailureAtItsStart(t *testing.T) {
	f := newFixtureOf(t, window.Limits{}, 1)
	require.Zero(t, f.failing.Left(clocktest.Now))
	w := f.watch(watcher.Options{Bookmarks: true})
	slow := f.watch(watcher.Options{Buffer: 1, Policy: watcher.Terminate})
	f.write(2, 3, 4, 5)
	f.has(w, 2, 3, 4, 5)
	f.pass(time.Second)
	_, end := f.read(slow)
	require.ErrorIs(t, end, watcher.ErrSlowConsumer)
}

// watchFor is watch for one with a deadline.
func (f *fixture) watchFor(d time.Duration) *watcher.Watch {
	w, reply := watcher.New(&f.feed, watcher.Options{}), make(chan error, 1)
	f.ref.Tell(f.registration(w, reply, d))
	f.executor.Run()
	require.NoError(f, <-reply)
	return w
}

// registration returns the message that registers a watch with a deadline.
func (f *fixture) registration(w *watcher.Watch, reply chan<- error, d time.Duration) dispatcher.Register {
	snap := f.published.Load()
	return dispatcher.Register{
		Watch: w.Member(), Start: watcher.Start{Next: snap.Window.Next(), After: snap.Revision}, Snapshot: snap,
		Deadline: watcher.Deadline{At: f.clock.Now().Add(d)}, Reply: reply,
	}
}

func TestDeadline_EndsTheWatchAndNoOther(t *testing.T) {
	f := newFixture(t)
	snap := f.published.Load()
	until := func(d watcher.Deadline) *watcher.Watch {
		return f.admit(watcher.Options{}, dispatcher.Register{Start: watcher.Start{Next: snap.Window.Next(), After: snap.Revision}, Deadline: d, Snapshot: snap})
	}
	due := until(watcher.Deadline{At: f.clock.Now().Add(time.Minute)})
	byContext := until(watcher.Deadline{At: f.clock.Now().Add(time.Minute), ByContext: true})
	other := f.watch(watcher.Options{})
	f.pass(time.Minute - time.Second)
	require.NoError(t, due.Err())
	f.pass(time.Second)
	require.ErrorIs(t, due.Err(), watcher.ErrDeadline)
	require.NoError(t, other.Err())
	require.NoError(t, byContext.Err(), "its context ends it")
	require.EqualValues(t, 2, f.stats.Watches.Load())
}
