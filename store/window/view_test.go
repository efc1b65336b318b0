package window_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/internal/storetest"
	"github.com/watchmill/watchmill/store/tree"
	"github.com/watchmill/watchmill/store/window"
)

// Later changes of the window do not show in a view, at any offset.
func TestWindow_GrowthAndTrimDoNotBreakAView(t *testing.T) {
	w, objects := window.New(window.Limits{ChunkSize: 4, MaxEvents: 8}, nil), tree.New()
	w.Reset(0)
	for n := range 6 {
		put(w, objects, fmt.Sprint("k", n))
	}
	old := snapshot(w, objects)
	v := old.Window
	for n := range 20 {
		put(w, objects, fmt.Sprint("later", n))
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
	w, objects := window.New(window.Limits{ChunkSize: 3}, nil), tree.New()
	w.Reset(0)
	for n := range 7 {
		put(w, objects, fmt.Sprint("k", n))
	}
	v := w.View()
	var sizes []int
	for at := v.First(); at < v.Next(); {
		events, ok := v.Read(at)
		require.True(t, ok)
		sizes = append(sizes, len(events))
		at += window.Seq(len(events))
	}
	require.Equal(t, []int{3, 3, 1}, sizes)
}

// A reader that appends to what it read must not write into the window.
func TestView_ReadLeavesNoRoomBehindTheEvents(t *testing.T) {
	w, objects := window.New(window.Limits{}, nil), tree.New()
	put(w, objects, "a")
	view := w.View()
	events, _ := view.Read(0)
	b := put(w, objects, "b")
	_ = append(events, store.Event{Type: store.Bookmark})
	view = w.View()
	again, _ := view.Read(0)
	require.Len(t, again, 2)
	require.Same(t, b, again[1].Object)
}

// A reader at a trimmed position gets ok = false, at every offset.
func TestWindow_ReadReportsTrimmedPositions(t *testing.T) {
	w, objects := window.New(window.Limits{ChunkSize: 2, MaxEvents: 4}, nil), tree.New()
	w.Reset(0)
	for n := range 10 {
		put(w, objects, fmt.Sprint("k", n))
	}
	w.Trim(start)
	v := w.View()
	for at := range window.Seq(11) {
		_, ok := v.Read(at)
		require.Equal(t, at >= v.First(), ok, "position %d", at)
	}
	_, err := v.Seek(v.Floor() - 1)
	require.ErrorIs(t, err, store.ErrExpired)
}

func TestView_ZeroValueIsEmpty(t *testing.T) {
	var v window.View
	at, err := v.Seek(0)
	require.NoError(t, err)
	require.Zero(t, at)
	events, ok := v.Read(0)
	require.True(t, ok)
	require.Empty(t, events)
	require.Zero(t, v.RevisionAt(0))
	require.Zero(t, v.Since(5))
	require.Zero(t, v.Bytes())
	state, err := new(window.Snapshot).StateAt(t.Context(), 0)
	require.NoError(t, err)
	require.Zero(t, state.Len(), "nothing was ever there")
	_, err = new(window.Snapshot).StateAt(t.Context(), 1)
	require.ErrorIs(t, err, store.ErrFuture)
}

func TestView_SinceTakesAnyNumber(t *testing.T) {
	w, objects := window.New(window.Limits{}, nil), tree.New()
	put(w, objects, "a")
	put(w, objects, "b")
	v := w.View()
	for last, want := range map[int]window.Seq{-1: 2, 0: 2, 1: 1, 2: 0, 3: 0} {
		require.Equal(t, want, v.Since(last), "the last %d", last)
	}
}

// One writer, four readers, each with views of its own and of others' moments.
func TestView_IsReadWhileTheWriterAppends(t *testing.T) {
	const readers, writes = 4, 1000
	views := make([]chan *window.Snapshot, readers)
	var wg sync.WaitGroup
	for i := range views {
		views[i] = make(chan *window.Snapshot, 8)
		wg.Go(func() {
			for v := range views[i] {
				readEverything(t, v)
			}
		})
	}
	w, objects := window.New(window.Limits{ChunkSize: 8, MaxEvents: 64}, nil), tree.New(storetest.ByNode)
	for n := range writes {
		put(w, objects, fmt.Sprint("k", n%50))
		if n%100 == 99 {
			after := w.View().Revision()
			is := tree.From(objects.View())
			is.Delete("k3")
			is.Delete("k4")
			events := tree.Diff(storetest.Things, objects.View(), is.View(), after, after+5, start)
			w.AppendDiff(events, after, after+5, start)
			objects = is
		}
		w.Trim(start)
		views[n%readers] <- snapshot(w, objects)
	}
	for _, c := range views {
		close(c)
	}
	wg.Wait()
}

// readEverything reads all of a view and checks that it is whole.
func readEverything(t *testing.T, s *window.Snapshot) {
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
		at += window.Seq(len(events))
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
