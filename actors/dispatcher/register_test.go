package dispatcher_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors/dispatcher"
	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/tree"
)

// Before a watch from 5 is registered, a list has taken the place of what
// happened from 4 to 8: what there was between 5 and 8 is not known.
func TestRegister_FutureStartThatAListHasOvertakenExpires(t *testing.T) {
	f := newFixture(t)
	f.window.Append(added(2), time.Time{})
	snap := f.commit()
	_, expired := f.register(watcher.Start{Pending: 5}, snap)
	behind, past := f.register(watcher.Start{Pending: 8}, snap)
	f.window.AppendDiff([]store.Event{added(7)}, 3, 8, time.Time{})
	f.commit()
	f.executor.Run()
	require.ErrorIs(t, <-expired, store.ErrExpired)
	require.NoError(t, <-past, "it starts behind the list")
	require.EqualValues(t, 8, behind.Revision())
	require.EqualValues(t, 1, f.stats.Watches.Load())
}

// Storage has gone back in time while a watch was on its way: its start means
// nothing any more.
func TestRegister_StartOfAnotherEpochExpires(t *testing.T) {
	f := newFixture(t)
	f.window.Append(added(2), time.Time{})
	snap := f.commit()
	_, present := f.register(watcher.Start{Next: snap.Window.Next(), After: 2}, snap)
	_, pending := f.register(watcher.Start{Pending: 5}, snap)
	f.window.Reset(1)
	f.epoch++
	f.commit()
	f.executor.Run()
	require.Equal(t, &store.ExpiredError{Requested: 2, Oldest: 1}, <-present)
	require.Equal(t, &store.ExpiredError{Requested: 5, Oldest: 1}, <-pending)
	require.Zero(t, f.stats.Watches.Load())
}

// That of a watch from now on means as much as before.
func TestRegister_StartNowOfAnotherEpochIsLater(t *testing.T) {
	f := newFixture(t)
	f.state = tree.New()
	f.write(2, 3)
	snap := f.published.Load()
	start := watcher.Start{Next: snap.Window.Next(), After: 3}
	withState := start
	withState.State = snap.State()
	f.window.Reset(1)
	f.state = tree.New()
	f.epoch++
	f.commit()
	now := f.admit(watcher.Options{}, dispatcher.Register{Start: start, Snapshot: snap, Now: true, AnyEpoch: true})
	state := f.admit(watcher.Options{}, dispatcher.Register{Start: withState, Snapshot: snap, Now: true, AnyEpoch: true})
	f.has(now)
	f.has(state)
	f.write(2)
	f.has(now, 2)
	f.has(state, 2)
}

// A watch that waits for its revision leaves at once when it is stopped, whatever
// is written.
func TestRegister_FutureStartThatIsStoppedLeavesAtOnce(t *testing.T) {
	f := newFixture(t)
	w, reply := f.register(watcher.Start{Pending: 1000}, f.published.Load())
	f.executor.Run()
	require.NoError(t, <-reply)
	require.EqualValues(t, 1, f.stats.Watches.Load())
	w.Stop()
	f.executor.Run()
	require.Zero(t, f.stats.Watches.Load())
}

// One that ended on its way is not taken in, leaves no stream behind, and its caller learns why. The dispatcher
// may hear of the end first.
func TestRegister_WatchThatEndedOnItsWay(t *testing.T) {
	key, err := store.NewFilter(nil, store.FilterOptions{Key: "a"})
	require.NoError(t, err)
	for _, filter := range []*store.Filter{nil, key} {
		for _, first := range []bool{true, false} {
			f := newFixture(t)
			w, reply, snap := watcher.New(&f.feed, watcher.Options{}), make(chan error, 1), f.published.Load()
			if first {
				w.Stop()
			}
			start := watcher.Start{Next: snap.Window.Next(), After: snap.Revision}
			f.ref.Tell(dispatcher.Register{Watch: w.Member(), Filter: filter, Start: start, Snapshot: snap, Reply: reply})
			w.Stop()
			f.executor.Run()
			require.ErrorIs(t, <-reply, watcher.ErrStopped)
			require.Zero(t, f.stats.Watches.Load())
			require.Zero(t, f.stats.Streams.Load())
			require.Empty(t, f.feed.Registry.Watches())
		}
	}
}

// A watch may be asked to end, once it has everything, before it is registered. A handler that has
// nothing to do is woken to end.
func TestRegister_HandlerThatIsToEndIsWoken(t *testing.T) {
	f := newFixture(t)
	reason := errors.New("storage has lost the watch")
	w := watcher.NewHandled(&f.feed, watcher.Options{OnPool: true}, func(*watcher.Delivery) { t.Error("there is nothing for it") })
	w.Member().EndWhenCaughtUp(reason)
	snap := f.published.Load()
	f.admitThis(w, dispatcher.Register{Start: watcher.Start{Next: snap.Window.Next(), After: 1}, Snapshot: snap})
	require.ErrorIs(t, w.Err(), reason)
	require.Zero(t, f.stats.Watches.Load())
}

// A consumer that asked for events before its watch was registered is signalled once there are some.
func TestRegister_SignalsAConsumerThatWaits(t *testing.T) {
	f := newFixture(t)
	f.state = tree.New()
	f.write(2)
	filter, err := store.NewFilter(nil, store.FilterOptions{Key: "a"})
	require.NoError(t, err)
	told, snap := 0, f.published.Load()
	w := watcher.NewNotified(&f.feed, watcher.Options{}, func() { told++ })
	f.take(w, 0)
	f.admitThis(w, dispatcher.Register{
		Filter: filter, Start: watcher.Start{Next: snap.Window.Next(), After: 2, State: snap.State()}, Snapshot: snap,
	})
	require.Equal(t, 1, told)
	f.take(w, 0, 2)
	f.take(w, 2)
}

// A registration that the dispatcher's end overtakes is answered.
func TestRegister_AtTheEnd(t *testing.T) {
	f := newFixture(t)
	w, reply := f.register(watcher.Start{After: 1}, f.published.Load())
	f.ref.Stop()
	f.executor.Run()
	require.ErrorIs(t, <-reply, watcher.ErrEngineClosed)
	require.ErrorIs(t, w.Err(), watcher.ErrEngineClosed)
}

// The window may move past the start of a watch that is about to be registered. The watch still has
// the events of the snapshot that it was registered with.
func TestRegister_ResumeThatTheWindowHasMovedPastKeepsItsEvents(t *testing.T) {
	f := newFixtureWith(t, small)
	f.write(2, 3)
	snap := f.published.Load()
	at, err := snap.Window.Seek(2)
	require.NoError(t, err)
	f.write(4, 5)
	require.Greater(t, f.window.View().First(), at)
	w := f.admit(watcher.Options{}, dispatcher.Register{Start: watcher.Start{Next: at, After: 2}, Snapshot: snap})
	f.has(w, 3, 4, 5)
	require.Zero(t, f.stats.Expired.Load())
}

// A caller finds the snapshot before the dispatcher is told of its commit. The watch, which
// then follows the stream that it has alone, gets nothing from before its start.
func TestRegister_BeforeTheCommitOfItsSnapshotIsTold(t *testing.T) {
	f := newFixture(t)
	filter, err := store.NewFilter(nil, store.FilterOptions{Prefix: "a"})
	require.NoError(t, err)
	f.window.Append(added(2), time.Time{})
	snap := f.publish()
	w, reply := watcher.NewNotified(&f.feed, watcher.Options{}, func() {}), make(chan error, 1)
	f.ref.Tell(dispatcher.Register{
		Watch: w.Member(), Filter: filter, Start: watcher.Start{Next: snap.Window.Next(), After: 2}, Snapshot: snap, Reply: reply,
	})
	f.executor.Run()
	require.NoError(t, <-reply)
	f.take(w, 2)

	f.ref.Tell(dispatcher.Committed{})
	f.executor.Run()
	f.take(w, 2)
	f.window.Append(added(3), time.Time{})
	f.commit()
	f.executor.Run()
	f.take(w, 3, 3)
}

// A watch from now is on its way while the window moves past the snapshot that its caller saw.
func TestRegister_StartNowThatTheWindowHasMovedPastIsLater(t *testing.T) {
	f := newFixtureWith(t, small)
	f.state = tree.New()
	f.write(2)
	snap := f.published.Load()
	start := watcher.Start{Next: snap.Window.Next(), After: 2}
	withState := start
	withState.State = snap.State()
	for rev := store.Revision(3); rev <= 9; rev++ {
		f.write(rev)
	}
	now := f.admit(watcher.Options{}, dispatcher.Register{Start: start, Snapshot: snap, Now: true})
	state := f.admit(watcher.Options{}, dispatcher.Register{Start: withState, Snapshot: snap, Now: true})
	resumed, _ := f.register(start, snap)
	f.executor.Run()
	_, _, err := resumed.Take(1)
	require.ErrorIs(t, err, store.ErrExpired)
	require.EqualValues(t, 1, f.stats.Expired.Load())
	require.EqualValues(t, 9, now.Revision())
	f.has(state, 9) // the one object
	f.write(10)
	f.has(now, 10)
	f.has(state, 10)
}

// take requires that the watch has events of these revisions, and everything through one.
func (f *fixture) take(w *watcher.Watch, through store.Revision, want ...store.Revision) {
	f.Helper()
	events, reached, err := w.Take(100)
	require.NoError(f, err)
	require.Equal(f, through, reached)
	var got []store.Revision
	for _, ev := range events {
		got = append(got, ev.Revision)
	}
	require.Equal(f, want, got)
}

// A handler has no turn before there is something for it: it waits like one that has had a
// turn, and its revision follows the storage's.
func TestRegister_HandlerWithNothingToReadIsNotWoken(t *testing.T) {
	for _, tc := range []struct {
		name   string
		filter store.FilterOptions
	}{{"everything", store.FilterOptions{}}, {"selected", store.FilterOptions{Key: "a"}}} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture(t)
			filter, err := store.NewFilter(nil, tc.filter)
			require.NoError(t, err)
			var handled []store.Revision
			var handling []string
			before := f.stats.Wakes.Load()
			w := f.admitHandler(filter, func(rev store.Revision) {
				handled, handling = append(handled, rev), f.feed.Registry.Handling()
			})
			require.Equal(t, before, f.stats.Wakes.Load())
			require.Empty(t, f.feed.Registry.Handling())

			other := added(2)
			other.Object.Key = "b"
			f.window.Append(other, time.Time{})
			f.commit()
			f.executor.Run()
			require.EqualValues(t, 2, w.Revision(), "even if that was not for it")
			f.window.Append(added(3), time.Time{})
			f.commit()
			f.executor.Run()
			require.Equal(t, store.Revision(3), handled[len(handled)-1])
			require.Equal(t, []string{w.Name()}, handling)
			require.EqualValues(t, 3, w.Revision())
			w.Stop()
			f.executor.Run()
		})
	}
}

// Handlers of many watches are woken in parts while the dispatcher looks for more of them:
// each of them once for a commit, and for every commit.
func TestRound_ManyHandlersAreWokenOnceForACommit(t *testing.T) {
	const watches = 200 // more than are woken at once
	f := newFixture(t)
	handled := make([]int, watches)
	for i := range watches {
		defer f.admitHandler(nil, func(store.Revision) { handled[i]++ }).Stop()
	}
	for n := range 3 {
		before := f.stats.Wakes.Load()
		f.append(added(store.Revision(n + 2)))
		require.EqualValues(t, watches, f.stats.Wakes.Load()-before)
		for i := range watches {
			require.Equal(t, n+1, handled[i], "watch %d", i)
		}
	}
}

// A watch comes after the commits that were told of before it, though no round has
// been for them yet.
func TestRegister_CatchesUpFirst(t *testing.T) {
	f := newFixture(t)
	f.window.Append(added(2), time.Time{})
	snap := f.commit()
	w, reply := watcher.New(&f.feed, watcher.Options{}), make(chan error, 1)
	f.ref.Tell(dispatcher.Register{Watch: w.Member(), Start: watcher.Start{Next: snap.Window.Next(), After: 2}, Snapshot: snap, Reply: reply})
	f.window.Append(added(3), time.Time{})
	f.commit()
	f.executor.Run()
	require.NoError(t, <-reply)
	f.has(w, 3)
}

func TestRegister_FutureStartLeavesOutWhatComesBefore(t *testing.T) {
	f := newFixture(t)
	w := f.watchFrom(watcher.Options{}, watcher.Start{Pending: 3})
	f.write(2)
	f.has(w)
	f.write(3, 4)
	f.has(w, 4)
}
