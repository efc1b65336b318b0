package tree_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/internal/storetest"
	"github.com/watchmill/watchmill/store/tree"
)

func ExampleTree_Load() {
	objects := tree.New()
	objects.Load([]*store.Object{{Key: "pods/a", Revision: 1}, {Key: "pods/b", Revision: 2}})
	fmt.Println(objects.Len(), objects.Get("pods/b").Revision)
	// Output: 2 2
}

// A tree that objects were loaded into is the same as one that each was put into, in
// whatever order they are and whatever it had.
func TestTree_LoadAgreesWithPut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.SampledFrom([]string{"", "n1", "n2", "n3"})
		some := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) *store.Object {
			return storetest.OnNode(treeKeys.Draw(t, "key"), value.Draw(t, "node"), value.Draw(t, "app"), 1)
		}), 0, 600)
		state, model := storetest.TreeOf(), treeModel{}
		for range rapid.IntRange(1, 2).Draw(t, "loads") {
			objects := some.Draw(t, "objects")
			if rapid.Bool().Draw(t, "sorted") {
				byKey := func(a, b *store.Object) int { return strings.Compare(a.Key, b.Key) }
				slices.SortFunc(objects, byKey)
				objects = slices.CompactFunc(objects, func(a, b *store.Object) bool { return a.Key == b.Key })
			}
			state.Load(objects)
			for _, o := range objects {
				model[o.Key] = o
			}
			clear(objects) // the slice is the caller's
		}
		requireSameState(t, model, state.View(), value.Draw(t, "value"), "")
		for key, o := range model {
			require.Same(t, o, state.Delete(key))
		}
		require.Empty(t, storetest.KeysBy(t, state.View(), storetest.ByNode, "n1", "", ""))
	})
}

func TestTree_LoadShowsInTheNextView(t *testing.T) {
	objects := storetest.TreeOf()
	before := objects.View()
	objects.Load([]*store.Object{storetest.OnNode("a", "n1", "", 1)})
	require.Equal(t, []string{"a"}, storetest.Keys(objects.View(), "", ""))
	require.Empty(t, storetest.Keys(before, "", ""))
}
