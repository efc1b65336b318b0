package dispatcher_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors/dispatcher"
	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/window"
)

// writeOther commits changes of another key than that of write, at the revisions.
func (f *fixture) writeOther(revisions ...store.Revision) {
	for _, rev := range revisions {
		other := added(rev)
		other.Object.Key = "b"
		f.window.Append(other, f.clock.Now())
		f.window.Trim(f.clock.Now())
		f.commit()
		f.executor.Run()
	}
}

// settled returns a fixture with a window of four events and a watch of key a, which has
// read everything when the window moves: its stream is then not looked at again.
func settled(t *testing.T) (*fixture, *watcher.Watch) {
	f := newFixtureWith(t, window.Limits{MaxEvents: 4, ChunkSize: 1})
	w := f.selecting(store.FilterOptions{Key: "a"})
	f.has(w) // and follows its stream from here
	f.writeOther(2, 3, 4, 5, 6, 7)
	f.write(8)
	f.has(w, 8)
	f.writeOther(9)
	return f, w
}

// ofKey sends m with a new watch of key a.
func (f *fixture) ofKey(m dispatcher.Register) *watcher.Watch {
	filter, err := store.NewFilter(nil, store.FilterOptions{Key: "a"})
	require.NoError(f, err)
	m.Filter, m.Snapshot = filter, f.published.Load()
	return f.admit(watcher.Options{}, m)
}

// A stream keeps nothing for longer than the window does, neither of the round before nor of
// the last one, if its watches have read it.
func TestWindowMoves_StreamsDropWhatTheWindowDrops(t *testing.T) {
	for name, write := range map[string]func(*fixture, *watcher.Watch, store.Revision){
		"when there is more for the watch": func(f *fixture, w *watcher.Watch, rev store.Revision) {
			f.write(rev)
			f.has(w, int(rev))
		},
		"when there is nothing for it": func(f *fixture, w *watcher.Watch, rev store.Revision) { f.writeOther(rev) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixtureWith(t, window.Limits{MaxEvents: 4, ChunkSize: 1})
			w := f.selecting(store.FilterOptions{Key: "a"})
			f.has(w) // and follows its stream from here
			f.write(2)
			object := f.nextObject(w)
			f.has(w)
			for rev := range store.Revision(20) {
				write(f, w, 3+rev)
			}
			runtime.GC()
			require.Nil(t, object.Value())
			f.write(23)
			f.has(w, 23)
		})
	}
}

// However often the window has moved, a stream has the last rounds for a watch that lags a little, which then
// need not search the window: what it would find there counts as lag.
func TestWindowMoves_StreamsKeepTheLastRounds(t *testing.T) {
	f := newFixtureWith(t, window.Limits{MaxEvents: 8, ChunkSize: 1})
	w := f.selecting(store.FilterOptions{Key: "a"})
	f.has(w) // and follows its stream from here
	rev := store.Revision(2)
	for ; rev < 200; rev++ {
		f.write(rev)
		f.has(w, int(rev))
	}
	for ; rev < 220; rev++ {
		f.writeOther(rev) // until the stream has nothing
	}
	f.write(rev)
	f.writeOther(rev + 1)
	f.write(rev + 2)
	f.writeOther(rev + 3)
	require.EqualValues(t, 2, w.Lag())
	f.has(w, int(rev), int(rev+2))
}

// A watch that searches the window leaves in its stream nothing that the window has dropped.
func TestWindowMoves_StreamsDropWhatAWatchHasSearched(t *testing.T) {
	f := newFixtureWith(t, window.Limits{MaxEvents: 4, ChunkSize: 1})
	f.write(2)
	w := f.ofKey(dispatcher.Register{Start: watcher.Start{Next: 0, After: 1}})
	object := f.nextObject(w)
	f.has(w)
	for rev := range store.Revision(20) {
		f.writeOther(3 + rev)
	}
	runtime.GC()
	require.Nil(t, object.Value())
	f.write(23)
	f.has(w, 23)
}

// A consumer in the middle of the last round does not have everything, however long ago that was.
func TestWindowMoves_StreamKeepsWhatAConsumerHasInHand(t *testing.T) {
	f := newFixtureWith(t, window.Limits{MaxEvents: 4, ChunkSize: 1})
	w := f.selecting(store.FilterOptions{Key: "a"})
	f.has(w) // and follows its stream from here
	f.write(2, 3)
	for ev, err := range w.Events() {
		require.NoError(t, err)
		require.EqualValues(t, 2, ev.Revision)
		f.writeOther(4, 5, 6, 7, 8, 9, 10, 11, 12)
		require.False(t, w.HasEverything())
		require.EqualValues(t, 1, w.Lag())
		break
	}
	f.has(w, 3)
	require.True(t, w.HasEverything())
	f.write(13)
	f.has(w, 13)
}

// One consumer that is stuck must not have the dispatcher ask all watches of its filter again, at each
// move of the window: it is asked first.
func TestWindowMoves_AsksTheConsumerThatIsStuckFirst(t *testing.T) {
	f := newFixtureWith(t, window.Limits{MaxEvents: 4, ChunkSize: 1})
	var all [5]*watcher.Watch
	for i := range all {
		all[i] = f.selecting(store.FilterOptions{Key: "a"})
		f.has(all[i]) // and follows its stream from here
	}
	stuck := all[3]
	f.write(2, 3)
	for ev, err := range stuck.Events() {
		require.NoError(t, err)
		require.EqualValues(t, 2, ev.Revision)
		for _, w := range all {
			if w != stuck {
				f.has(w, 2, 3)
			}
		}
		f.writeOther(4, 5, 6, 7, 8, 9)
		require.Same(t, stuck.Member(), stuck.Member().Stream().Members()[0])
		break
	}
	for _, w := range all {
		w.Stop()
		f.executor.Run()
	}
	require.Zero(t, f.stats.Watches.Load(), "each is found where it was moved to")
}

// A watch that resumes on the stream of others which have read everything still needs the
// window.
func TestWindowMoves_WatchThatJoinsAStreamKeepsWhatLeaves(t *testing.T) {
	f, beside := settled(t)
	at, err := f.window.View().Seek(7)
	require.NoError(t, err)
	behind := f.ofKey(dispatcher.Register{Start: watcher.Start{Next: at, After: 7}})
	f.writeOther(10, 11, 12, 13, 14)
	f.has(behind, 8)
	f.has(beside)
}

// A watch that has waited for its revision goes on, even if it is not read: nothing for it has
// left the window.
func TestWindowMoves_WatchFromTheFutureSkipsWhatIsNotForIt(t *testing.T) {
	f, beside := settled(t)
	future := f.ofKey(dispatcher.Register{Start: watcher.Start{Pending: 10}})
	f.writeOther(10, 11, 12, 13, 14, 15, 16)
	f.has(future)
	f.write(17)
	f.has(future, 17)
	f.has(beside, 17)
}

// After a round that has failed, the watches of a settled stream read the window again, and keep what leaves it.
func TestWindowMoves_WatchKeepsWhatLeavesAfterARoundThatFailed(t *testing.T) {
	f := newFixtureWith(t, window.Limits{MaxEvents: 4, ChunkSize: 1})
	fails := f.failingClone()
	w := f.selecting(store.FilterOptions{Labels: "app=web"})
	web := added(2)
	web.Object.Labels = store.LabelsOf(map[string]string{"app": "web"})
	f.append(web)
	f.has(w, 2) // and follows its stream
	f.writeOther(3, 4, 5, 6, 7, 8, 9)
	left := added(10) // a deletion to the watch, which has a copy of the last state
	left.Type, left.Prev = store.Modified, web.Object
	*fails = true
	f.append(left)
	require.False(t, *fails, "the round has failed")
	f.writeOther(11, 12, 13, 14, 15, 16, 17)
	f.has(w, 10)
}

// A watch that has read everything needs the window once there is more for it: it keeps no more
// than its buffer of what leaves the window.
func TestWindowMoves_WatchThatGetsMoreOnASettledStreamExpires(t *testing.T) {
	f := newFixtureWith(t, window.Limits{MaxEvents: 4, ChunkSize: 1})
	filter, err := store.NewFilter(nil, store.FilterOptions{Key: "a"})
	require.NoError(t, err)
	snap := f.published.Load()
	start := watcher.Start{Next: snap.Window.Next(), After: snap.Revision}
	w := f.admit(watcher.Options{Buffer: 1}, dispatcher.Register{Filter: filter, Start: start, Snapshot: snap})
	f.has(w) // and follows its stream from here
	f.writeOther(2, 3, 4, 5, 6, 7)
	f.write(8, 9)
	f.writeOther(10, 11, 12, 13, 14)
	revisions, end := f.read(w)
	require.Equal(t, []int{8}, revisions)
	require.ErrorIs(t, end, store.ErrExpired)
}
