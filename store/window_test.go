package store_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
)

var start = time.Unix(0, 0)

// put appends an event for key at the next revision and applies it.
func put(w *store.Window, tree *store.Tree, key string) *store.Object {
	o := newThing(store.Object{Key: key, Revision: w.View().Revision() + 1})
	ev := store.Event{Type: store.Added, Revision: o.Revision, Object: o, Prev: tree.Get(key)}
	if ev.Prev != nil {
		ev.Type = store.Modified
	}
	w.Append(ev, start)
	tree.Put(o)
	return o
}

// remove appends the deletion of key at the next revision and applies it.
func remove(w *store.Window, tree *store.Tree, key string) {
	rev := w.View().Revision() + 1
	prev := tree.Get(key)
	w.Append(store.Event{Type: store.Deleted, Revision: rev, Object: things.Gone(prev, rev, start), Prev: prev}, start)
	tree.Delete(key)
}

// snapshot returns the window and its tree as they are now.
func snapshot(w *store.Window, tree *store.Tree) *store.Snapshot {
	return &store.Snapshot{Revision: w.View().Revision(), Base: tree.View(), Window: w.View()}
}

func TestWindow_HoldsAppendedEvents(t *testing.T) {
	w, tree := store.NewWindow(store.WindowLimits{}, nil), store.NewTree()
	w.Reset(5)
	a := put(w, tree, "a")
	remove(w, tree, "a")
	v := w.View()
	events, ok := v.Read(v.First())
	require.True(t, ok)
	require.Equal(t, []string{"ADDED a@6", "DELETED a@7"}, []string{events[0].String(), events[1].String()})
	require.Same(t, a, events[0].Object)
	require.Same(t, a, events[1].Prev)
}

func TestWindow_EmptyStartsAtTheListsRevision(t *testing.T) {
	w := store.NewWindow(store.WindowLimits{}, nil)
	for _, floor := range []store.Revision{1, 100, 7} { // storage may have been restored
		w.Reset(floor)
		v := w.View()
		_, err := v.Seek(floor - 1)
		expired := (*store.ExpiredError)(nil)
		require.ErrorAs(t, err, &expired)
		require.Equal(t, store.ExpiredError{Requested: floor - 1, Oldest: floor}, *expired)
		at, err := v.Seek(floor)
		require.NoError(t, err)
		require.Equal(t, v.Next(), at)
	}
}

// Instead of resizing by guesses about the rate, the limits
// say what is kept, and a small window has small chunks.
func TestWindow_StaysWithinItsLimits(t *testing.T) {
	for _, bound := range []int{1, 2, 3, 5, 8, 100, 1000, 1001} {
		for _, startAt := range []int{0, 7} {
			w, tree := store.NewWindow(store.WindowLimits{MaxEvents: bound}, nil), store.NewTree()
			w.Reset(store.Revision(startAt))
			for n := range 3*bound + 7 {
				put(w, tree, fmt.Sprint("k", n%5))
				w.Trim(start)
				v := w.View()
				require.LessOrEqual(t, v.Len(), bound)
				require.GreaterOrEqual(t, v.Len(), min(n+1, bound-bound/4), "bound %d: no more than a chunk goes at once", bound)
			}
		}
	}
}

func TestWindow_DefaultLimitsHoldALargeBurst(t *testing.T) {
	w, tree := store.NewWindow(store.WindowLimits{}, nil), store.NewTree()
	w.Reset(0)
	for n := range 100_000 {
		put(w, tree, fmt.Sprint("k", n%100))
	}
	require.Zero(t, w.Trim(start.Add(store.DefaultMinAge-1)))
	require.Equal(t, 100_000, w.Trim(start.Add(store.DefaultMinAge)))
}

// Later changes of the window do not show in a view, at any offset.
func TestWindow_GrowthAndTrimDoNotBreakAView(t *testing.T) {
	w, tree := store.NewWindow(store.WindowLimits{ChunkSize: 4, MaxEvents: 8}, nil), store.NewTree()
	w.Reset(0)
	for n := range 6 {
		put(w, tree, fmt.Sprint("k", n))
	}
	old := snapshot(w, tree)
	v := old.Window
	for n := range 20 {
		put(w, tree, fmt.Sprint("later", n))
		w.Trim(start)
	}
	require.Greater(t, w.View().First(), v.Next())
	for at := v.First(); at < v.Next(); at++ {
		events, ok := v.Read(at)
		require.True(t, ok)
		require.Equal(t, fmt.Sprint("k", at), events[0].Key())
	}
	for rev := range store.Revision(7) {
		state, err := old.StateAt(t.Context(), rev)
		require.NoError(t, err)
		require.Equal(t, int(rev), state.Len())
	}
}

// A reader gets one chunk at a time, up to the end.
func TestWindow_ReadGoesChunkByChunk(t *testing.T) {
	w, tree := store.NewWindow(store.WindowLimits{ChunkSize: 3}, nil), store.NewTree()
	w.Reset(0)
	for n := range 7 {
		put(w, tree, fmt.Sprint("k", n))
	}
	v := w.View()
	var sizes []int
	for at := v.First(); at < v.Next(); {
		events, ok := v.Read(at)
		require.True(t, ok)
		sizes = append(sizes, len(events))
		at += store.Seq(len(events))
	}
	require.Equal(t, []int{3, 3, 1}, sizes)
}

// A reader that appends to what it read must not write into the window.
func TestReadLeavesNoRoomBehindTheEvents(t *testing.T) {
	w, tree := store.NewWindow(store.WindowLimits{}, nil), store.NewTree()
	put(w, tree, "a")
	events, _ := w.View().Read(0)
	b := put(w, tree, "b")
	_ = append(events, store.Event{Type: store.Bookmark})
	again, _ := w.View().Read(0)
	require.Len(t, again, 2)
	require.Same(t, b, again[1].Object)
}

// The states within a gap have no revision of their own, only positions.
func TestStateBefore_WithinAGap(t *testing.T) {
	w, tree := store.NewWindow(store.WindowLimits{ChunkSize: 2}, nil), treeOf("a", "b")
	listed := treeOf("c", "d", "e")
	events := store.Diff(things, tree.View(), listed.View(), 10, 30, start)
	require.Len(t, events, 5)
	w.AppendDiff(events, 10, 30, start)
	now := snapshot(w, listed)
	for at := range 6 {
		state, err := now.StateBefore(t.Context(), store.Seq(at))
		require.NoError(t, err)
		require.Equal(t, keys(tree.View(), "", ""), keys(state, "", ""), "position %d", at)
		switch {
		case at == len(events):
		case events[at].Type == store.Deleted:
			tree.Delete(events[at].Key())
		default:
			tree.Put(events[at].Object)
		}
	}
	_, err := now.StateBefore(t.Context(), now.Window.Next()+1)
	require.ErrorIs(t, err, store.ErrFuture)
	_, err = now.StateAt(t.Context(), 12)
	require.ErrorIs(t, err, store.ErrExpired)
}

func TestStateBeforeWhatTheWindowHasIsExpired(t *testing.T) {
	w, tree := store.NewWindow(store.WindowLimits{ChunkSize: 2, MaxEvents: 4}, nil), store.NewTree()
	for n := range 8 {
		put(w, tree, fmt.Sprint("k", n%3))
	}
	w.Trim(start)
	now := snapshot(w, tree)
	_, err := now.StateBefore(t.Context(), now.Window.First()-1)
	expired := (*store.ExpiredError)(nil)
	require.ErrorAs(t, err, &expired)
	require.Equal(t, now.Window.Floor(), expired.Oldest)
	state, err := now.StateBefore(t.Context(), now.Window.First())
	require.NoError(t, err)
	require.Equal(t, 3, state.Len())
}

// Reading a state of the past that takes long ends with its reader's context.
func TestRebuildingAStateEndsWithTheContext(t *testing.T) {
	w, tree := filled(3000)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := snapshot(w, tree).StateAt(ctx, 1)
	require.ErrorIs(t, err, context.Canceled)
	state, err := snapshot(w, tree).StateAt(ctx, 3000)
	require.NoError(t, err, "the newest state needs no rebuilding")
	require.Equal(t, 1000, state.Len())
}

// What took long is remembered for the next page, four states of it, as long as
// the window reaches back to them.
func TestRebuiltStatesAreRememberedAndForgotten(t *testing.T) {
	w, tree := filled(10_000)
	newest := w.View().Bytes()
	at := func(rev store.Revision) *store.TreeView {
		state, err := snapshot(w, tree).StateAt(t.Context(), rev)
		require.NoError(t, err)
		return state
	}
	require.NotSame(t, at(9_900), at(9_900), "a state near the newest is quicker to rebuild than it is worth to keep")
	require.Equal(t, newest, w.View().Bytes())
	first := at(5000)
	require.Same(t, first, at(5000))
	require.Greater(t, w.View().Bytes(), newest, "what is remembered is counted")
	for _, rev := range []store.Revision{4000, 3000, 2000} {
		at(rev)
	}
	require.Same(t, first, at(5000), "four fit")
	at(1000)
	require.Same(t, first, at(5000), "the one that was not used for longest made room")
	w.Compact(9000)
	require.Less(t, w.View().Bytes(), newest)
	require.Equal(t, 1000, at(9000).Len())
}

// States are rebuilt from the nearest that is known, before or after.
func TestRebuiltStatesAreRightWhateverIsKnown(t *testing.T) {
	w, tree := store.NewWindow(store.WindowLimits{}, nil), treeOf()
	model := []string{""}
	for n := range 6000 {
		switch key := fmt.Sprint("k", n*7919%97); {
		case n%5 == 4 && tree.Get(key) != nil:
			remove(w, tree, key)
		default:
			put(w, tree, key)
		}
		model = append(model, keysAndRevisions(tree.View()))
	}
	for _, rev := range []store.Revision{100, 4000, 4500, 3990, 50, 4999, 100, 2000, 0, 6000} {
		state, err := snapshot(w, tree).StateAt(t.Context(), rev)
		require.NoError(t, err)
		require.Equal(t, model[rev], keysAndRevisions(state), "at %d", rev)
		require.True(t, state.Indexed(byNode), "past states have the indexes")
		require.Len(t, keysBy(t, state, byNode, "", "", ""), state.Len())
	}
}

// A reader at a trimmed position gets ok = false, at every offset.
func TestWindow_ReadReportsTrimmedPositions(t *testing.T) {
	w, tree := store.NewWindow(store.WindowLimits{ChunkSize: 2, MaxEvents: 4}, nil), store.NewTree()
	w.Reset(0)
	for n := range 10 {
		put(w, tree, fmt.Sprint("k", n))
	}
	w.Trim(start)
	v := w.View()
	for at := range store.Seq(11) {
		_, ok := v.Read(at)
		require.Equal(t, at >= v.First(), ok, "position %d", at)
	}
	_, err := v.Seek(v.Floor() - 1)
	require.ErrorIs(t, err, store.ErrExpired)
}

func TestWindow_StatesBetweenSnapshotsAreExact(t *testing.T) {
	w, tree := store.NewWindow(store.WindowLimits{ChunkSize: 4}, nil), store.NewTree(byNode)
	w.Reset(0)
	for n := range 10 {
		put(w, tree, fmt.Sprint("k", n))
	}
	for rev := range store.Revision(11) {
		state, err := snapshot(w, tree).StateAt(t.Context(), rev)
		require.NoError(t, err)
		require.Equal(t, int(rev), state.Len())
		require.True(t, state.Indexed(byNode), "past states have the indexes")
		require.Len(t, keysBy(t, state, byNode, "", "", ""), int(rev))
	}
}

func TestWindowZeroViewIsEmpty(t *testing.T) {
	var v store.WindowView
	at, err := v.Seek(0)
	require.NoError(t, err)
	require.Zero(t, at)
	events, ok := v.Read(0)
	require.True(t, ok)
	require.Empty(t, events)
	require.Zero(t, v.RevisionAt(0))
	require.Zero(t, v.Since(5))
	require.Zero(t, v.Bytes())
	state, err := new(store.Snapshot).StateAt(t.Context(), 0)
	require.NoError(t, err)
	require.Zero(t, state.Len(), "nothing was ever there")
	_, err = new(store.Snapshot).StateAt(t.Context(), 1)
	require.ErrorIs(t, err, store.ErrFuture)
}

func TestSinceTakesAnyNumber(t *testing.T) {
	w, tree := store.NewWindow(store.WindowLimits{}, nil), store.NewTree()
	put(w, tree, "a")
	put(w, tree, "b")
	v := w.View()
	for last, want := range map[int]store.Seq{-1: 2, 0: 2, 1: 1, 2: 0, 3: 0} {
		require.Equal(t, want, v.Since(last), "the last %d", last)
	}
}

func TestWindowTakesABookmarkForProgress(t *testing.T) {
	w := store.NewWindow(store.WindowLimits{}, nil)
	w.Append(store.Event{Type: store.Bookmark, Revision: 9}, start)
	require.Equal(t, store.Revision(9), w.View().Revision())
	require.Zero(t, w.View().Len())
}

// The user's estimate may panic. Then the event is not in the window, which is
// otherwise as before.
func TestWindowSurvivesAPanicInTheEstimate(t *testing.T) {
	broken := false
	w := store.NewWindow(store.WindowLimits{ChunkSize: 1}, func(o *store.Object) int {
		if broken {
			panic("bad")
		}
		return 1
	})
	tree := store.NewTree()
	put(w, tree, "a")
	before := w.View()
	broken = true
	require.PanicsWithValue(t, "bad", func() { put(w, tree, "a") })
	require.Equal(t, before, w.View())
	broken = false
	put(w, tree, "a")
	require.Equal(t, 2, w.View().Len())
}

// A storage's history and the window of the cache over it hold the same objects,
// which count once; the slots of the events are each one's own.
func TestWindow_BytesBesideAnotherWindow(t *testing.T) {
	limits := store.WindowLimits{ChunkSize: 1}
	sizeOf := func(*store.Object) int { return megabyte }
	history, window, tree := store.NewWindow(limits, sizeOf), store.NewWindow(limits, sizeOf), store.NewTree()
	history.Reset(0)
	window.Reset(50)
	for n := range 100 {
		o := put(history, tree, "k")
		if n >= 50 && n < 90 {
			window.Append(store.Event{Type: store.Modified, Revision: o.Revision, Object: o, Prev: o}, start)
		}
	}
	mb := func(n int64) int { return int(n / megabyte) }
	require.Equal(t, 99, mb(history.View().Bytes()))
	require.Equal(t, 99, mb(history.View().BytesBeside(store.WindowView{})))
	require.Equal(t, 49+10, mb(history.View().BytesBeside(window.View())), "before, and what the cache is still to read")
	require.Zero(t, mb(window.View().BytesBeside(history.View())))
	require.Positive(t, window.View().BytesBeside(history.View()))
}

// Positions are numbers and views are short-lived: what was dropped is garbage.
func TestPain02_DroppedEventsAreGarbage(t *testing.T) {
	w, tree := store.NewWindow(store.WindowLimits{ChunkSize: 2, MaxEvents: 4}, nil), store.NewTree()
	dropped := weak.Make(put(w, tree, "gone"))
	remove(w, tree, "gone")
	old := w.View()
	for n := range 6 {
		put(w, tree, fmt.Sprint("k", n))
	}
	require.Equal(t, 4, w.Trim(start))
	stalledAt := old.First()

	runtime.GC()
	require.NotNil(t, dropped.Value(), "the old view shows it")
	runtime.KeepAlive(old)
	runtime.GC()
	require.Nil(t, dropped.Value(), "no view has it any more")

	_, ok := w.View().Read(stalledAt)
	require.False(t, ok)
	runtime.KeepAlive(w)
	runtime.KeepAlive(tree)
}

// One writer, four readers, each with views of its own and of others' moments.
func TestWindowViewsAreReadWhileTheWriterAppends(t *testing.T) {
	const readers, writes = 4, 1000
	views := make([]chan *store.Snapshot, readers)
	var wg sync.WaitGroup
	for i := range views {
		views[i] = make(chan *store.Snapshot, 8)
		wg.Go(func() {
			for v := range views[i] {
				readEverything(t, v)
			}
		})
	}
	w, tree := store.NewWindow(store.WindowLimits{ChunkSize: 8, MaxEvents: 64}, nil), store.NewTree(byNode)
	for n := range writes {
		put(w, tree, fmt.Sprint("k", n%50))
		if n%100 == 99 {
			after := w.View().Revision()
			is := store.TreeOf(tree.View())
			is.Delete("k3")
			is.Delete("k4")
			events := store.Diff(things, tree.View(), is.View(), after, after+5, start)
			w.AppendDiff(events, after, after+5, start)
			tree = is
		}
		w.Trim(start)
		views[n%readers] <- snapshot(w, tree)
	}
	for _, c := range views {
		close(c)
	}
	wg.Wait()
}

// readEverything reads all of a view and checks that it is whole.
func readEverything(t *testing.T, s *store.Snapshot) {
	v := s.Window
	last := store.Revision(0)
	for at := v.First(); at < v.Next(); {
		events, ok := v.Read(at)
		if !ok || len(events) == 0 {
			t.Errorf("nothing at %d", at)
			return
		}
		for _, ev := range events {
			if ev.Revision <= last || ev.Object == nil {
				t.Errorf("%v after %v", ev, last)
			}
			last = ev.Revision
		}
		at += store.Seq(len(events))
	}
	for _, rev := range []store.Revision{v.Floor(), v.Revision()} {
		if state, err := s.StateAt(t.Context(), rev); err != nil || state.Len() > 50 {
			t.Errorf("%v", err)
		}
	}
	if _, err := v.Seek(v.Floor()); err != nil {
		t.Error(err)
	}
}
