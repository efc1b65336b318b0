package tree_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/internal/storetest"
	"github.com/watchmill/watchmill/store/tree"
)

// history draws writes that storage made, each at a revision of its own, with
// others' writes between. It returns the states before and after them, and the
// last revision.
func history(t *rapid.T) (old, is *tree.Tree, after, through store.Revision) {
	objects, rev := storetest.TreeOf(), store.Revision(0)
	write := func() {
		rev++
		key := fmt.Sprint("k", rapid.IntRange(0, 12).Draw(t, "key"))
		switch o := objects.Get(key); {
		case rapid.IntRange(0, 9).Draw(t, "kind") == 0: // of another type
		case o == nil:
			objects.Put(storetest.NewThing(store.Object{Key: key, Revision: rev, Created: rev}))
		case rapid.Bool().Draw(t, "delete"):
			objects.Delete(key)
		default:
			objects.Put(storetest.NewThing(store.Object{Key: key, Revision: rev, Created: o.Created}))
		}
	}
	for range rapid.IntRange(0, 40).Draw(t, "before") {
		write()
	}
	old, after = tree.From(objects.View()), rev
	for range rapid.IntRange(0, 40).Draw(t, "between") {
		write()
	}
	return old, objects, after, rev
}

func TestDiff_OfHonestStorageHasARevisionForEachEvent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old, is, after, through := history(t)
		events := tree.Diff(storetest.Things, old.View(), is.View(), after, through, time.Time{})
		requireLeadsTo(t, old, is, events)
		last := after
		for _, ev := range events {
			require.Greater(t, ev.Revision, last, "%v", ev)
			require.LessOrEqual(t, ev.Revision, through, "%v", ev)
			require.True(t, ev.Is(store.Synthetic), "%v", ev)
			require.Equal(t, ev.Revision, ev.Object.Revision, "%v", ev)
			last = ev.Revision
		}
	})
}

func TestDiff_OfAnyStatesLeadsFromOneToTheOther(t *testing.T) {
	revision := rapid.Map(rapid.Uint64Range(0, 20), func(n uint64) store.Revision { return store.Revision(n) })
	state := rapid.Custom(func(t *rapid.T) *tree.Tree {
		objects := storetest.TreeOf()
		for n := range 8 {
			if rapid.Bool().Draw(t, "there") {
				objects.Put(storetest.NewThing(store.Object{
					Key: fmt.Sprint("k", n), Revision: revision.Draw(t, "revision"), Created: revision.Draw(t, "created"),
				}))
			}
		}
		return objects
	})
	rapid.Check(t, func(t *rapid.T) {
		old, is := state.Draw(t, "old"), state.Draw(t, "new")
		after, through := revision.Draw(t, "after"), revision.Draw(t, "through")
		events := tree.Diff(storetest.Things, old.View(), is.View(), after, through, time.Time{})
		requireLeadsTo(t, old, is, events)
		last := after + 1
		for _, ev := range events {
			require.GreaterOrEqual(t, ev.Revision, last)
			require.LessOrEqual(t, ev.Revision, max(through, after+1))
			last = ev.Revision
		}
	})
}

func TestDiff_OfADeletionSaysWhenAndWhatWasThere(t *testing.T) {
	old, at := storetest.TreeOf("a"), time.Unix(7, 0)
	events := tree.Diff(storetest.Things, old.View(), nil, 10, 15, at)
	require.Len(t, events, 1)
	require.Equal(t, at, events[0].Object.Written)
	require.Same(t, old.Get("a"), events[0].Prev)
	require.Equal(t, store.Revision(1), old.Get("a").Revision, "the object itself does not change")
}

func TestDiff_OfAViewAndItselfLooksAtNothing(t *testing.T) {
	v := storetest.TreeOf("a", "b").View()
	require.Zero(t, testing.AllocsPerRun(10, func() {
		if tree.Diff(storetest.Things, v, v, 1, 2, time.Time{}) != nil {
			t.Error("events from nothing")
		}
	}))
}
