package tree_test

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/internal/storetest"
	"github.com/watchmill/watchmill/store/tree"
)

// treeModel is a tree that is obviously right.
type treeModel map[string]*store.Object

func (m treeModel) keys(match func(*store.Object) bool) []string {
	found := []string{}
	for key, o := range m {
		if match(o) {
			found = append(found, key)
		}
	}
	slices.Sort(found)
	return found
}

func (m treeModel) clone() treeModel {
	c := treeModel{}
	maps.Copy(c, m)
	return c
}

// treeKeys are enough for a tree of three levels, and share prefixes.
var treeKeys = rapid.Custom(func(t *rapid.T) string {
	ns := rapid.SampledFrom([]string{"a", "a-b", "a0", "b"}).Draw(t, "namespace")
	if n := rapid.IntRange(-1, 500).Draw(t, "name"); n >= 0 {
		return fmt.Sprintf("%s/%03d", ns, n)
	}
	return ns
})

func TestTree_AgreesWithAMap(t *testing.T) {
	nodes := rapid.SampledFrom([]string{"", "n1", "n2", "n3"})
	rapid.Check(t, func(t *rapid.T) {
		objects, model := storetest.TreeOf(), treeModel{}
		type past struct {
			view  *tree.View
			model treeModel
		}
		var pasts []past
		rev := store.Revision(0)
		put := func() {
			rev++
			o := storetest.OnNode(treeKeys.Draw(t, "key"), nodes.Draw(t, "node"), nodes.Draw(t, "app"), rev)
			require.Same(t, model[o.Key], objects.Put(o))
			model[o.Key] = o
		}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(*rapid.T) { put() },
			"put many": func(t *rapid.T) {
				for range rapid.IntRange(0, 300).Draw(t, "n") {
					put()
				}
			},
			"delete": func(t *rapid.T) {
				key := treeKeys.Draw(t, "key")
				require.Same(t, model[key], objects.Delete(key))
				delete(model, key)
			},
			"delete under": func(t *rapid.T) {
				for _, key := range storetest.Keys(objects.View(), rapid.SampledFrom([]string{"a", "a-b", "b"}).Draw(t, "prefix"), "") {
					require.Same(t, model[key], objects.Delete(key))
					delete(model, key)
				}
			},
			"view":     func(*rapid.T) { pasts = append(pasts, past{objects.View(), model.clone()}) },
			"continue": func(*rapid.T) { objects = tree.From(objects.View()) },
			"": func(t *rapid.T) {
				key := treeKeys.Draw(t, "get")
				require.Same(t, model[key], objects.Get(key))
				requireSameState(t, model, objects.View(), nodes.Draw(t, "value"), treeKeys.Draw(t, "after"))
			},
		})
		for _, p := range pasts {
			requireSameState(t, p.model, p.view, "n1", "")
		}
	})
}

func requireSameState(t *rapid.T, m treeModel, v *tree.View, value, after string) {
	require.Equal(t, len(m), v.Len())
	require.Equal(t, m.keys(func(o *store.Object) bool { return o.Key > after }), storetest.Keys(v, "", after))
	for _, prefix := range []string{"", "a", "a/", "b"} {
		under := func(o *store.Object) bool { return store.HasPrefix(o.Key, prefix) && o.Key > after }
		require.Equal(t, m.keys(under), storetest.Keys(v, prefix, after))
		require.Equal(t, len(m.keys(under)), v.Count(prefix, after))
		require.Equal(t, m.keys(func(o *store.Object) bool {
			return under(o) && o.Field(storetest.ByNode.Column) == value
		}), storetest.KeysBy(t, v, storetest.ByNode, value, prefix, after))
		require.Equal(t, m.keys(func(o *store.Object) bool {
			app, ok := o.Labels.Lookup(storetest.ByApp.Name)
			return under(o) && ok && app == value
		}), storetest.KeysBy(t, v, storetest.ByApp, value, prefix, after))
	}
	for o := range v.All("", "") {
		require.Same(t, m[o.Key], o)
		require.Same(t, o, v.Get(o.Key))
	}
}

// Lists that race with the writer each show one state. Here every
// write changes two objects to the same revision before it publishes, and the
// number of objects is that of the writes.
func TestTree_ViewsAreSafeDuringWrites(t *testing.T) {
	const writes, readers = 300, 4
	views := make([]chan *tree.View, readers)
	var wg sync.WaitGroup
	for i := range views {
		views[i] = make(chan *tree.View, 16)
		wg.Go(func() {
			for v := range views[i] {
				requireWholeWrite(t, v)
			}
		})
	}
	objects := storetest.TreeOf()
	for rev := range store.Revision(writes) {
		node := fmt.Sprint("n", rev%3)
		objects.Put(storetest.OnNode("first", node, "web", rev))
		objects.Put(storetest.OnNode(fmt.Sprintf("item/%04d", rev), node, "web", rev))
		objects.Put(storetest.OnNode("last", node, "web", rev))
		if rev%5 == 0 {
			objects.Delete(fmt.Sprintf("item/%04d", rev/2))
			objects.Put(storetest.OnNode(fmt.Sprintf("item/%04d", rev/2), node, "web", rev))
		}
		views[rev%readers] <- objects.View()
		views[(rev+1)%readers] <- objects.View() // two read it at once
	}
	for _, c := range views {
		close(c)
	}
	wg.Wait()
}

// requireWholeWrite checks that v is the state after a write, in all of its
// ways to read, and that going on from it does not disturb others.
func requireWholeWrite(t *testing.T, v *tree.View) {
	rev := v.Get("first").Revision
	objects := v.AppendTo(nil, "")
	if rev != v.Get("last").Revision || len(objects) != int(rev)+3 || v.Len() != len(objects) {
		t.Errorf("half a write: revisions %v and %v, %d objects", rev, v.Get("last").Revision, len(objects))
	}
	if n := len(storetest.KeysBy(t, v, storetest.ByApp, "web", "item", "")); n != int(rev)+1 {
		t.Errorf("%d objects by index at revision %v", n, rev)
	}
	state := tree.From(v)
	state.Put(storetest.OnNode("mine", "n9", "web", rev))
	state.Delete("first")
	if v.Get("first") == nil || v.Get("mine") != nil {
		t.Error("what was written to the continuation shows in the view")
	}
}
