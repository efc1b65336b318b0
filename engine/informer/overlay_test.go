package informer_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/cache"
)

// written is a pod as a write would return it.
func written(p pod, rev store.Revision) *informer.Object[pod] {
	return &informer.Object[pod]{Key: p.Name, Value: p, Revision: rev, Created: rev}
}

func indexedFixture(t *testing.T) (*fixture, *informer.Overlay[pod]) {
	t.Helper()
	r := newFixture(t, func(cfg *informer.Config[pod]) { cfg.Indexers = cache.Indexers[pod]{"node": byNode} })
	r.executor.Run()
	return r, r.Overlay(0)
}

func TestOverlay_ShowsAWriteUntilTheInformerHasIt(t *testing.T) {
	r, overlay := indexedFixture(t)
	rev := r.write(pod{Name: "a", Node: "n1"})
	require.Nil(t, r.Get("a"))
	overlay.Wrote(written(pod{Name: "a", Node: "n1"}, rev))
	require.Equal(t, rev, overlay.Get("a").Revision)
	r.executor.Run()
	require.NotNil(t, r.Get("a"))
	require.Same(t, r.Get("a"), overlay.Get("a"), "the informer's object, which a Transform may have changed")
	overlay.Wrote(written(pod{Name: "a", Node: "n1"}, rev))
	require.Same(t, r.Get("a"), overlay.Get("a"), "though it was recorded late")
	newer := r.put(pod{Name: "a", Node: "n2"})
	require.Equal(t, newer, overlay.Get("a").Revision)
	found, err := overlay.ByIndex("node", "n1")
	require.NoError(t, err)
	require.Empty(t, found)
	require.Same(t, r.Get("a"), overlay.Get("a"))
}

func TestOverlay_DeletionEndsAWrite(t *testing.T) {
	r, overlay := indexedFixture(t)
	rev := r.write(pod{Name: "a"})
	overlay.Wrote(written(pod{Name: "a"}, rev))
	gone, err := r.source.Delete("a")
	require.NoError(t, err)
	require.NotNil(t, overlay.Get("a"), "the overlay does not know of the deletion")
	overlay.Removed("a", gone)
	require.Nil(t, overlay.Get("a"))
	r.executor.Run()
	require.Nil(t, overlay.Get("a"))
}

func TestOverlay_LateWriteDoesNotBringBackWhatWasDeleted(t *testing.T) {
	r, overlay := indexedFixture(t)
	rev := r.put(pod{Name: "a"})
	r.remove("a")
	overlay.Wrote(written(pod{Name: "a"}, rev))
	require.Nil(t, overlay.Get("a"))
}

func TestOverlay_NewerObjectWins(t *testing.T) {
	r, overlay := indexedFixture(t)
	rev := r.put(pod{Name: "a"})
	r.remove("a")
	r.put(pod{Name: "a", N: 2})
	overlay.Wrote(written(pod{Name: "a", N: 1}, rev))
	require.Equal(t, 2, overlay.Get("a").Value.N)
}

func TestOverlay_IndexGoesByWhatWasWritten(t *testing.T) {
	r, overlay := indexedFixture(t)
	r.put(pod{Name: "a", Node: "n1"})
	r.put(pod{Name: "c", Node: "n1"})
	byNode := func(node string) []string {
		found, err := overlay.ByIndex("node", node)
		require.NoError(t, err)
		return keys(found)
	}
	overlay.Wrote(written(pod{Name: "b", Node: "n1"}, 100))
	overlay.Wrote(written(pod{Name: "a", Node: "n2"}, 101))
	require.Equal(t, []string{"b", "c"}, byNode("n1"))
	require.Equal(t, []string{"a"}, byNode("n2"))
	overlay.Removed("b", 102)
	overlay.Wrote(written(pod{Name: "b", Node: "n1"}, 100)) // too late
	require.Equal(t, []string{"c"}, byNode("n1"))
	_, err := overlay.ByIndex("nowhere", "n1")
	require.ErrorIs(t, err, informer.ErrUnknownIndex)
}

func TestOverlay_IsBounded(t *testing.T) {
	r, _ := indexedFixture(t)
	overlay := r.Overlay(8)
	for i := range 100 {
		overlay.Wrote(written(pod{Name: fmt.Sprint(i)}, store.Revision(100+i)))
	}
	var kept []int
	for i := range 100 {
		if overlay.Get(fmt.Sprint(i)) != nil {
			kept = append(kept, i)
		}
	}
	require.LessOrEqual(t, len(kept), 8)
	require.Subset(t, kept, []int{94, 95, 96, 97, 98, 99}, "the newest stay")
}

// Storage may make several writes at one revision.
func TestOverlay_IsBoundedThoughWritesAreOfOneRevision(t *testing.T) {
	r, _ := indexedFixture(t)
	overlay := r.Overlay(8)
	for i := range 100 {
		overlay.Wrote(written(pod{Name: fmt.Sprint(i), Node: "n1"}, 100))
	}
	kept, err := overlay.ByIndex("node", "n1")
	require.NoError(t, err)
	require.LessOrEqual(t, len(kept), 8)
	require.NotEmpty(t, kept)
}

// A read neither ends the informer nor puts an object in quarantine, and does not call OnError
// again and again.
func TestOverlay_IndexFuncThatFailsForAWriteCostsThatWriteAlone(t *testing.T) {
	for _, policy := range []informer.ItemErrorPolicy{informer.Skip, informer.Quarantine, informer.Fail} {
		t.Run(policy.String(), func(t *testing.T) {
			r := newFixture(t, func(cfg *informer.Config[pod]) {
				cfg.ItemErrors = policy
				cfg.Indexers = cache.Indexers[pod]{"node": byNode}
			})
			r.executor.Run()
			require.NoError(t, r.AddIndexers(cache.Indexers[pod]{"again": byNode}))
			overlay := r.Overlay(0)
			for i, node := range []string{"bad", "panic", "n1"} {
				overlay.Wrote(written(pod{Name: node, Node: node}, store.Revision(100+i)))
			}
			for _, index := range []string{"node", "again"} {
				found, err := overlay.ByIndex(index, "n1")
				require.NoError(t, err)
				require.Equal(t, []string{"n1"}, keys(found))
				found, err = overlay.ByIndex(index, "bad")
				require.NoError(t, err)
				require.Empty(t, found)
			}
			require.Empty(t, r.reported())
			require.Empty(t, r.Quarantined())
			r.put(pod{Name: "a", Node: "n1"})
			require.NoError(t, r.Err())
			require.NotNil(t, r.Get("a"))
		})
	}
}
