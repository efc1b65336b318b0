package tree_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/internal/storetest"
	"github.com/watchmill/watchmill/store/tree"
)

func inOrder(i int) *store.Object {
	return storetest.OnNode(fmt.Sprintf("%05d", i), fmt.Sprintf("n%d", i/1000), "a", store.Revision(i+1))
}

// A tree whose nodes were compacted has what was put into it, and its views do not change.
func TestTree_AgreesWithTheModelAfterAppendingBetweenViews(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		objects, model := storetest.TreeOf(), treeModel{}
		every, deleted := rapid.IntRange(1, 300).Draw(t, "puts per view"), rapid.IntRange(2, 50).Draw(t, "puts per deletion")
		var past treeModel
		var view *tree.View
		for i := range 3000 {
			o := inOrder(i)
			objects.Put(o)
			model[o.Key] = o
			if i%deleted == 0 {
				gone := inOrder(i / 2).Key
				objects.Delete(gone)
				delete(model, gone)
			}
			if i%every == 0 {
				objects.View()
			}
			if i == 1500 {
				past, view = model.clone(), objects.View()
			}
		}
		requireSameState(t, past, view, "n1", "")
		requireSameState(t, model, objects.View(), "n1", "")
	})
}

// With nodes that are left half empty it takes 76.
func TestTree_AnObjectAppendedBetweenViewsTakesAtMost44Bytes(t *testing.T) {
	const n = 100_000
	objects := make([]*store.Object, n)
	for i := range objects {
		objects[i] = &store.Object{Key: fmt.Sprintf("%06d", i)}
	}
	before := heapInUse()
	state := tree.New()
	for i, o := range objects {
		state.Put(o)
		if i%10 == 0 {
			state.View()
		}
	}
	state.View()
	held := heapInUse() - before
	require.LessOrEqual(t, held/n, uint64(44))
	runtime.KeepAlive(state)
	runtime.KeepAlive(objects)
}

// A queue, whose first object goes when the next comes, has one length for ever.
func TestTree_AQueueOfOrderedKeysKeepsNoneOfThoseThatAreGone(t *testing.T) {
	const puts = 20_000
	key := func(i int) string { return fmt.Sprintf("%0100d", i) }
	for length := 100; length < 132; length++ {
		before := heapInUse()
		objects := tree.New()
		for i := range puts {
			objects.Put(&store.Object{Key: key(i)})
			if i >= length {
				objects.Delete(key(i - length))
			}
		}
		require.Less(t, heapInUse()-before, uint64(100<<10), "%d objects", length)
		runtime.KeepAlive(objects)
	}
}

// heapInUse returns the bytes of the objects that are reachable.
func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
