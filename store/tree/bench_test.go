package tree_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/internal/storetest"
	"github.com/watchmill/watchmill/store/tree"
)

// nodes returns a tree of n objects, 100 to a node.
func nodes(n int) (*tree.Tree, []*store.Object) {
	state := tree.New(storetest.ByNode)
	objects := make([]*store.Object, n)
	for i := range objects {
		objects[i] = storetest.OnNode(fmt.Sprintf("namespace-%02d/pod-%06d", i%50, i), fmt.Sprintf("node-%04d", i%(n/100)), "", 1)
		state.Put(objects[i])
	}
	return state, objects
}

func BenchmarkPut(b *testing.B) {
	for _, every := range []int{1, 100} {
		b.Run(fmt.Sprintf("objects=100k/puts-per-view=%d", every), func(b *testing.B) {
			state, objects := nodes(100_000)
			n := 0
			b.ReportAllocs()
			for b.Loop() {
				state.Put(objects[n*7919%len(objects)])
				if n++; n%every == 0 {
					state.View()
				}
			}
		})
	}
}

func BenchmarkViewAppendTo(b *testing.B) {
	objects, _ := nodes(10_000)
	v := objects.View()
	dst := make([]*store.Object, 0, v.Len())
	for b.Loop() {
		dst = v.AppendTo(dst[:0], "")
	}
}

// 100 objects of 100,000, and every other one, by index, and 100 by prefix.
func BenchmarkViewRead(b *testing.B) {
	objects, _ := nodes(100_000)
	v := objects.View()
	b.Run("by-index", func(b *testing.B) { readByIndex(b, v, "node-0500", 100) })
	b.Run("most-by-index", func(b *testing.B) {
		objects := tree.New(storetest.ByNode)
		for o := range v.All("", "") {
			objects.Put(storetest.OnNode(o.Key, fmt.Sprintf("node-%d", objects.Len()%2), "", 1))
		}
		readByIndex(b, objects.View(), "node-0", 50_000)
	})
	b.Run("page", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			n := 0
			for range v.All("namespace-25", "namespace-25/pod-050000") {
				if n++; n == 100 {
					break
				}
			}
		}
	})
}

func readByIndex(b *testing.B, v *tree.View, node string, want int) {
	b.ReportAllocs()
	for b.Loop() {
		objects, err := v.ByIndex(storetest.ByNode, node, "", "")
		if n := 0; err == nil {
			for range objects {
				n++
			}
			if n != want {
				b.Fatal(n)
			}
		}
	}
}

func BenchmarkDiff10k(b *testing.B) {
	state, objects := nodes(10_000)
	is := tree.From(state.View())
	for _, o := range objects[:10] {
		is.Delete(o.Key)
	}
	for b.Loop() {
		if n := len(tree.Diff(storetest.Things, state.View(), is.View(), 1, 100, time.Time{})); n != 10 {
			b.Fatal(n)
		}
	}
}

// Loading objects in the order of their keys.
func BenchmarkLoad(b *testing.B) {
	state, _ := nodes(100_000)
	objects := state.View().AppendTo(nil, "")
	b.ReportAllocs()
	for b.Loop() {
		tree.New(storetest.ByNode).Load(objects)
	}
}
