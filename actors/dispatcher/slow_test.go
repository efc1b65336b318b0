package dispatcher_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors/dispatcher"
	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/tree"
)

// A watch that catches up and stalls again before the dispatcher hears of it is slow. Here it
// catches up with a bookmark, and the registration of another makes it stall.
func TestSlow_WatchThatStallsAgainHasNotCaughtUp(t *testing.T) {
	f := newFixture(t)
	w := f.watch(watcher.Options{Buffer: 1, Bookmarks: true})
	f.write(2, 3, 4)
	f.pass(2 * time.Minute) // a bookmark is due
	events, err := w.Next(t.Context())
	require.NoError(t, err)
	require.Len(t, events, 3)

	for rev := store.Revision(5); rev <= 7; rev++ {
		f.window.Append(added(rev), f.clock.Now())
	}
	snap := f.commit()
	_, reply := f.register(watcher.Start{Next: snap.Window.Next(), After: 7}, snap)
	events, err = w.Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, store.Bookmark, events[0].Type)
	require.False(t, w.Stalled())
	f.executor.Run()
	require.NoError(t, <-reply)
	require.True(t, w.Stalled())
	require.EqualValues(t, 1, f.stats.Stalled.Load())
	f.has(w, 5, 6, 7)
	require.Zero(t, f.stats.Stalled.Load())
}

// The budget that was drawn for one watch is not used up for another that stalls later.
func TestSlow_WatchThatStallsLaterHasTheNextDraw(t *testing.T) {
	f := newFixture(t)
	f.pass(2 * time.Second) // in which the budget fills up
	first := f.watch(watcher.Options{Buffer: 1, Policy: watcher.Terminate})
	f.write(2, 3, 4)
	f.pass(99 * time.Millisecond)
	later := f.watch(watcher.Options{Buffer: 1, Policy: watcher.Terminate})
	f.write(5, 6, 7)
	f.pass(time.Millisecond)
	require.ErrorIs(t, first.Err(), watcher.ErrSlowConsumer)
	require.NoError(t, later.Err())
	f.pass(time.Second)
	require.ErrorIs(t, later.Err(), watcher.ErrSlowConsumer)
}

// A watch that catches up does not stop the time of another.
func TestSlow_BudgetOfSeveralGoesOnWhenOneCatchesUp(t *testing.T) {
	f := newFixture(t)
	f.pass(2 * time.Second) // in which the budget fills up
	reader := f.watch(watcher.Options{Buffer: 1, Policy: watcher.Terminate})
	stuck := f.watch(watcher.Options{Buffer: 1, Policy: watcher.Terminate})
	f.write(2, 3, 4)
	f.pass(20 * time.Millisecond)
	f.has(reader, 2, 3, 4)
	f.pass(80 * time.Millisecond)
	require.NoError(t, reader.Err())
	require.ErrorIs(t, stuck.Err(), watcher.ErrSlowConsumer)
}

// Events from before a watch began do not count as its lag.
func TestSlow_WatchThatBeginsLateDoesNotLag(t *testing.T) {
	f := newFixture(t)
	f.selecting(store.FilterOptions{Key: "a"}) // whose stream it shares
	f.write(2, 3, 4, 5, 6, 7)
	all := f.watch(watcher.Options{Buffer: 2})
	some := f.ofKey(dispatcher.Register{Start: watcher.Start{Next: f.window.View().Next(), After: 7}})
	f.write(8)
	require.False(t, all.Stalled())
	require.False(t, some.Stalled())
	f.write(9, 10)
	require.True(t, all.Stalled())
}

// A watch that is slow in its initial state still gets the rest of it and the bookmark, from which it can
// resume. One without a bookmark to come ends in the middle.
func TestSlow_WatchInItsInitialStateEndsAfterItsBookmark(t *testing.T) {
	const objects = 1000 // more than a batch
	f := newFixture(t)
	f.state = tree.New()
	for n := range objects {
		f.state.Put(&store.Object{Key: fmt.Sprint(n), Revision: 1})
	}
	snap := f.commit()
	opts := watcher.Options{Buffer: 1, Policy: watcher.Terminate, Bookmarks: true}
	start := watcher.Start{Next: snap.Window.Next(), After: 1, State: snap.State()}
	without := f.watchFrom(opts, start)
	start.InitialEnd = true
	with := f.watchFrom(opts, start)
	first, err := with.Next(t.Context())
	require.NoError(t, err)
	f.write(2, 3, 4)
	f.pass(time.Second)
	require.ErrorIs(t, without.Err(), watcher.ErrSlowConsumer)
	require.NoError(t, with.Err())
	require.Equal(t, 1, f.clock.Pending(), "the timer is for bookmarks, no longer for the budget")
	rest, end := f.read(with)
	require.ErrorIs(t, end, watcher.ErrSlowConsumer)
	require.Len(t, rest, objects-len(first)+1)
	require.Equal(t, -1, rest[len(rest)-1])
	require.EqualValues(t, 1, with.Revision())
}

// What is given back is no more than what was drawn, though the clock was set back meanwhile.
func TestSlow_ClockThatIsSetBackAddsNothingToTheBudget(t *testing.T) {
	f := newFixture(t)
	f.pass(400 * time.Millisecond) // in which the budget fills to a fifth
	first := f.watch(watcher.Options{Buffer: 1, Policy: watcher.Terminate})
	f.write(2, 3, 4)
	f.clock.Jump(-time.Hour)
	f.has(first, 2, 3, 4)
	next := f.watch(watcher.Options{Buffer: 1, Policy: watcher.Terminate})
	f.write(5, 6, 7)
	f.pass(30 * time.Millisecond)
	require.ErrorIs(t, next.Err(), watcher.ErrSlowConsumer)
}

// Those that do not read share a budget under Terminate. One that has read meanwhile
// draws again, and others do not draw.
func TestSlow_OnlyTerminateEndsWhatDoesNotRead(t *testing.T) {
	f := newFixture(t)
	stuck := f.watch(watcher.Options{Buffer: 1, Policy: watcher.Terminate})
	parked := f.watch(watcher.Options{Buffer: 1, Policy: watcher.Park})
	f.write(2, 3, 4, 5)
	f.pass(time.Second)
	require.ErrorIs(t, stuck.Err(), watcher.ErrSlowConsumer)
	require.NoError(t, parked.Err())
	require.True(t, parked.Stalled())
	require.EqualValues(t, 1, f.stats.Stalled.Load())
	require.EqualValues(t, 1, f.stats.Watches.Load())
	f.has(parked, 2, 3, 4, 5)
	require.Zero(t, f.stats.Stalled.Load(), "it has caught up")
}

// What a slow watch has not used of the budget is there for the next one.
func TestSlow_RestOfTheBudgetIsGivenBack(t *testing.T) {
	for name, leave := range map[string]func(*fixture, *watcher.Watch){
		"by one that catches up": func(f *fixture, w *watcher.Watch) { f.has(w, 2, 3, 4) },
		"by one that is stopped": func(f *fixture, w *watcher.Watch) {
			w.Stop()
			f.executor.Run()
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.pass(2 * time.Second) // in which the budget fills up
			first := f.watch(watcher.Options{Buffer: 1, Policy: watcher.Terminate})
			f.write(2, 3, 4)
			f.pass(20 * time.Millisecond)
			leave(f, first)
			next := f.watch(watcher.Options{Buffer: 1, Policy: watcher.Terminate})
			f.write(5, 6, 7)
			f.pass(70 * time.Millisecond)
			require.NoError(t, next.Err())
			f.pass(20 * time.Millisecond)
			require.ErrorIs(t, next.Err(), watcher.ErrSlowConsumer)
		})
	}
}
