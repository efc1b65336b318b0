package window_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/internal/storetest"
	"github.com/watchmill/watchmill/store/tree"
	"github.com/watchmill/watchmill/store/window"
)

// unapplied returns a window of six events with its tree, and the state before the last three.
func unapplied() (*window.Window, *tree.Tree, *tree.View) {
	w, objects := window.New(window.Limits{ChunkSize: 2}, nil), tree.New()
	w.Reset(0)
	for _, key := range []string{"a", "b", "c"} {
		put(w, objects, key)
	}
	base := objects.View()
	put(w, objects, "a")
	remove(w, objects, "b")
	put(w, objects, "d")
	return w, objects, base
}

// Whichever reader comes first, all get one state, that at the snapshot's revision, and
// past states are computed from the nearest one.
func TestSnapshot_StateHasTheUnappliedEvents(t *testing.T) {
	w, objects, base := unapplied()
	snap := &window.Snapshot{Revision: 6, Base: base, Unapplied: 3, Window: w.View()}
	known, at := snap.Known()
	require.Same(t, base, known)
	require.EqualValues(t, 3, at)
	for rev, want := range map[store.Revision]string{2: "a@1 b@2", 3: "a@1 b@2 c@3", 4: "a@4 b@2 c@3", 5: "a@4 c@3", 6: "a@4 c@3 d@6"} {
		state, err := snap.StateAt(t.Context(), rev)
		require.NoError(t, err)
		require.Equal(t, want, storetest.KeysAndRevisions(state), "revision %d", rev)
	}

	put(w, objects, "c")
	next := &window.Snapshot{Revision: 7, Base: base, Unapplied: 4, Window: w.View()}
	var readers sync.WaitGroup
	states := make([]*tree.View, 8)
	for i := range states {
		readers.Go(func() { states[i] = next.State() })
	}
	readers.Wait()
	for _, state := range states {
		require.Same(t, states[0], state)
	}
	require.Equal(t, "a@4 c@7 d@6", storetest.KeysAndRevisions(states[0]))
	require.Equal(t, "a@1 b@2 c@3", storetest.KeysAndRevisions(base), "a base does not change")
	known, at = next.Known()
	require.Same(t, states[0], known)
	require.EqualValues(t, 7, at)
}

// An object is found among the unapplied events without applying them, also after a state
// was made of them.
func TestSnapshot_GetsTheNewestObject(t *testing.T) {
	w, objects, base := unapplied()
	put(w, objects, "a")
	remove(w, objects, "d")
	put(w, objects, "b")
	for i, key := range []string{"c", "e"} {
		o := storetest.NewThing(store.Object{Key: key, Revision: store.Revision(10 + i)})
		w.Append(store.Event{Type: store.Emitted, Revision: o.Revision, Object: o}, start)
	}
	snap := &window.Snapshot{Revision: 11, Base: base, Unapplied: 8, Window: w.View()}
	requireAll := func() {
		t.Helper()
		for _, key := range []string{"a", "b", "c", "d", "e"} {
			require.Same(t, objects.Get(key), snap.Get(key), key)
		}
	}
	requireAll()
	known, _ := snap.Known()
	require.Same(t, base, known, "nothing was applied")
	require.Equal(t, 3, snap.State().Len())
	requireAll()
	require.Nil(t, new(window.Snapshot).Get("a"), "the empty snapshot")
}

// Looking through the events again and again costs more than applying them once, so many
// reads of single objects make the state.
func TestSnapshot_ManyGetsMakeTheState(t *testing.T) {
	w, objects, base := unapplied()
	snap := &window.Snapshot{Revision: 6, Base: base, Unapplied: 3, Window: w.View()}
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for range 200 {
				for _, key := range []string{"a", "b", "c", "d"} {
					assert.Same(t, objects.Get(key), snap.Get(key), key)
				}
			}
		})
	}
	readers.Wait()
	known, at := snap.Known()
	require.EqualValues(t, 6, at)
	require.Equal(t, "a@4 c@3 d@6", storetest.KeysAndRevisions(known))
}

// Events that a snapshot needs and its window lacks are a defect of the publisher, which
// must not keep its readers busy for ever.
func TestSnapshot_WithoutItsEventsPanics(t *testing.T) {
	w, objects := window.New(window.Limits{ChunkSize: 2}, nil), tree.New()
	w.Reset(0)
	base := objects.View()
	put(w, objects, "a")
	w.Reset(1)
	snap := &window.Snapshot{Revision: 1, Base: base, Unapplied: 1, Window: w.View()}
	require.Panics(t, func() { snap.State() })
	require.Panics(t, func() { snap.Get("a") })
}
