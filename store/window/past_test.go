package window_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/internal/storetest"
	"github.com/watchmill/watchmill/store/tree"
	"github.com/watchmill/watchmill/store/window"
)

// The states within a gap have no revision of their own, only positions.
func TestStateBefore_WithinAGap(t *testing.T) {
	w, objects := window.New(window.Limits{ChunkSize: 2}, nil), storetest.TreeOf("a", "b")
	listed := storetest.TreeOf("c", "d", "e")
	events := tree.Diff(storetest.Things, objects.View(), listed.View(), 10, 30, start)
	require.Len(t, events, 5)
	w.AppendDiff(events, 10, 30, start)
	now := snapshot(w, listed)
	for at := range 6 {
		state, err := now.StateBefore(t.Context(), window.Seq(at))
		require.NoError(t, err)
		require.Equal(t, storetest.Keys(objects.View(), "", ""), storetest.Keys(state, "", ""), "position %d", at)
		switch {
		case at == len(events):
		case events[at].Type == store.Deleted:
			objects.Delete(events[at].Key())
		default:
			objects.Put(events[at].Object)
		}
	}
	_, err := now.StateBefore(t.Context(), now.Window.Next()+1)
	require.ErrorIs(t, err, store.ErrFuture)
	_, err = now.StateAt(t.Context(), 12)
	require.ErrorIs(t, err, store.ErrExpired)
}

func TestStateBefore_WhatTheWindowHasIsExpired(t *testing.T) {
	w, objects := window.New(window.Limits{ChunkSize: 2, MaxEvents: 4}, nil), tree.New()
	for n := range 8 {
		put(w, objects, fmt.Sprint("k", n%3))
	}
	w.Trim(start)
	now := snapshot(w, objects)
	_, err := now.StateBefore(t.Context(), now.Window.First()-1)
	expired := (*store.ExpiredError)(nil)
	require.ErrorAs(t, err, &expired)
	require.Equal(t, now.Window.Floor(), expired.Oldest)
	state, err := now.StateBefore(t.Context(), now.Window.First())
	require.NoError(t, err)
	require.Equal(t, 3, state.Len())
}

// Reading a state of the past that takes long ends with its reader's context.
func TestStateAt_EndsWithItsContext(t *testing.T) {
	w, objects := filled(3000)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := snapshot(w, objects).StateAt(ctx, 1)
	require.ErrorIs(t, err, context.Canceled)
	state, err := snapshot(w, objects).StateAt(ctx, 3000)
	require.NoError(t, err, "the newest state needs no rebuilding")
	require.Equal(t, 1000, state.Len())
}

// What took long is remembered for the next page, four states of it, as long as
// the window reaches back to them.
func TestStateAt_RemembersAndForgetsWhatItRebuilt(t *testing.T) {
	w, objects := filled(10_000)
	newest := w.View().Bytes()
	at := func(rev store.Revision) *tree.View {
		state, err := snapshot(w, objects).StateAt(t.Context(), rev)
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
	four := w.View().Bytes()
	for rev := store.Revision(1500); rev < 8000; rev += 500 {
		at(rev)
	}
	require.Equal(t, four, w.View().Bytes(), "there are four still")
	w.Compact(9000)
	require.Less(t, w.View().Bytes(), newest)
	require.Equal(t, 1000, at(9000).Len())
}

// States are rebuilt from the nearest that is known, before or after.
func TestStateAt_IsRightWhateverIsKnown(t *testing.T) {
	w, objects := window.New(window.Limits{}, nil), storetest.TreeOf()
	model := []string{""}
	for n := range 6000 {
		switch key := fmt.Sprint("k", n*7919%97); {
		case n%5 == 4 && objects.Get(key) != nil:
			remove(w, objects, key)
		default:
			put(w, objects, key)
		}
		model = append(model, storetest.KeysAndRevisions(objects.View()))
	}
	for _, rev := range []store.Revision{100, 4000, 4500, 3990, 50, 4999, 100, 2000, 0, 6000} {
		state, err := snapshot(w, objects).StateAt(t.Context(), rev)
		require.NoError(t, err)
		require.Equal(t, model[rev], storetest.KeysAndRevisions(state), "at %d", rev)
		require.True(t, state.Indexed(storetest.ByNode), "past states have the indexes")
		require.Len(t, storetest.KeysBy(t, state, storetest.ByNode, "", "", ""), state.Len())
	}
}

func TestStateAt_IsExactBetweenSnapshots(t *testing.T) {
	w, objects := window.New(window.Limits{ChunkSize: 4}, nil), tree.New(storetest.ByNode)
	w.Reset(0)
	for n := range 10 {
		put(w, objects, fmt.Sprint("k", n))
	}
	for rev := range store.Revision(11) {
		state, err := snapshot(w, objects).StateAt(t.Context(), rev)
		require.NoError(t, err)
		require.Equal(t, int(rev), state.Len())
		require.True(t, state.Indexed(storetest.ByNode), "past states have the indexes")
		require.Len(t, storetest.KeysBy(t, state, storetest.ByNode, "", "", ""), int(rev))
	}
}

// A snapshot has not the events to undo from a later state, even one that is nearer than its own and was
// rebuilt for a reader of a later snapshot.
func TestStateBefore_IgnoresStatesOfLaterSnapshots(t *testing.T) {
	w, objects := filled(300)
	old := &window.Snapshot{Revision: 300, Base: tree.New(storetest.ByNode).View(), Unapplied: 300, Window: w.View()}
	for n := range 1100 {
		put(w, objects, fmt.Sprint("k", n))
	}
	_, err := snapshot(w, objects).StateBefore(t.Context(), 310)
	require.NoError(t, err)
	state, err := old.StateBefore(t.Context(), 290)
	require.NoError(t, err)
	require.Equal(t, 290, state.Len())
}

// What the window has dropped is rebuilt once for all readers of an old snapshot: for the
// watches that the window moves past.
func TestStateBefore_OfWhatTheWindowHasDroppedIsSharedByItsReaders(t *testing.T) {
	w, objects := filled(10_000)
	old := snapshot(w, objects)
	w.Trim(start.Add(time.Hour))
	for _, at := range []window.Seq{100, 101, 9_990} {
		state, err := old.StateBefore(t.Context(), at)
		require.NoError(t, err)
		require.Equal(t, min(int(at), 1000), state.Len())
		again, err := old.StateBefore(t.Context(), at)
		require.NoError(t, err)
		require.Same(t, state, again)
	}
}

// A reader of an old snapshot leaves nothing behind in a window that has moved on.
func TestStateAt_OfWhatTheWindowHasDroppedIsNotRemembered(t *testing.T) {
	w, objects := filled(10_000)
	old := snapshot(w, objects)
	w.Trim(start.Add(time.Hour))
	require.Zero(t, w.View().Len())
	state, err := old.StateAt(t.Context(), 5000)
	require.NoError(t, err)
	require.Equal(t, 1000, state.Len())
	require.Zero(t, w.View().Bytes())
}
