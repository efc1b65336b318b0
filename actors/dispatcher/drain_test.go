package dispatcher_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors/dispatcher"
	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
)

// Everything committed before is given, also to a watch that is registered late.
func TestDrain_EndsWatchesThatHaveEverything(t *testing.T) {
	f := newFixture(t)
	reason, reply := errors.New("draining"), make(chan error, 1)
	behind, done, future := f.watch(watcher.Options{}), f.watch(watcher.Options{}), f.watchFrom(watcher.Options{}, watcher.Start{Pending: 9})
	f.write(2)
	f.has(done, 2)
	f.window.Append(added(3), time.Time{})
	snap := f.commit()
	f.ref.Tell(dispatcher.Drain{Reason: reason, Reply: reply})
	late, taken := watcher.New(&f.feed, watcher.Options{}), make(chan error, 1)
	f.ref.Tell(dispatcher.Register{Watch: late.Member(), Start: watcher.Start{Next: 1, After: 2}, Snapshot: snap, Reply: taken})
	f.executor.Run()
	require.NoError(t, <-reply)
	require.NoError(t, <-taken)
	require.ErrorIs(t, future.Err(), reason, "it is owed nothing")
	for w, want := range map[*watcher.Watch][]int{behind: {2, 3}, done: {3}, late: {3}} {
		got, end := f.read(w)
		require.Equal(t, want, got)
		require.ErrorIs(t, end, reason)
	}
	require.Zero(t, f.stats.Watches.Load())
}

// The engine waits for the answer, even if the dispatcher stops first.
func TestDrain_IsAnsweredWhenTheDispatcherStops(t *testing.T) {
	f := newFixture(t)
	reply := make(chan error, 1)
	f.ref.Tell(dispatcher.Drain{Reason: errors.New("draining"), Reply: reply})
	f.ref.Stop()
	f.executor.Run()
	require.Len(t, reply, 1)
	require.ErrorIs(t, <-reply, watcher.ErrEngineClosed)
}

// A consumer that has everything may never read again.
func TestDrain_EndsAtOnceWhatHasEverything(t *testing.T) {
	f := newFixture(t)
	reason := errors.New("draining")
	all, some := f.watch(watcher.Options{}), f.selecting(store.FilterOptions{Key: "a"})
	f.write(2)
	f.has(all, 2)
	f.has(some, 2)
	f.ref.Tell(dispatcher.Drain{Reason: reason})
	f.executor.Run()
	require.ErrorIs(t, all.Err(), reason)
	require.ErrorIs(t, some.Err(), reason)
	require.Zero(t, f.stats.Watches.Load())
}

// The engine sends Drain when it sees a snapshot, which may be before Committed comes.
func TestDrain_ComesAfterTheCommitOfWhatIsPublished(t *testing.T) {
	f := newFixture(t)
	reason := errors.New("draining")
	w := f.watch(watcher.Options{})
	f.window.Append(added(2), f.clock.Now())
	f.publish()
	f.ref.Tell(dispatcher.Drain{Reason: reason})
	f.executor.Run()
	got, end := f.read(w)
	require.Equal(t, []int{2}, got)
	require.ErrorIs(t, end, reason)
}

// Storage may have ended for good, so there may be no other drain.
func TestDrain_WhoseRoundFailsEndsWatchesAfterTheNext(t *testing.T) {
	f := newFixture(t)
	fails := f.failingClone()
	*fails = true
	byLabel, all := f.selecting(store.FilterOptions{Labels: "app=web"}), f.watch(watcher.Options{})
	web := added(2)
	web.Object.Labels = store.LabelsOf(map[string]string{"app": "web"})
	f.append(web)
	left := added(3) // a deletion to the watch by label, which has a copy of the last state
	left.Type, left.Prev = store.Modified, web.Object
	f.window.Append(left, f.clock.Now())
	f.commit()
	reason, reply := errors.New("storage has ended"), make(chan error, 1)
	f.ref.Tell(dispatcher.Drain{Reason: reason, Reply: reply})
	f.executor.Run()
	require.False(t, *fails)
	require.Len(t, reply, 1, "a call waits for the answer")
	f.ref.Tell(dispatcher.Committed{}) // as the engine does
	f.executor.Run()
	for w, want := range map[*watcher.Watch][]int{byLabel: {2, 3}, all: {2, 3}} {
		got, end := f.read(w)
		require.Equal(t, want, got)
		require.ErrorIs(t, end, reason)
	}
}
