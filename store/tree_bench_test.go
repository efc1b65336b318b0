package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/internal/storetest"
)

// nodes returns a tree of n objects, 100 to a node.
func nodes(n int) (*store.Tree, []*store.Object) {
	tree := store.NewTree(storetest.ByNode)
	objects := make([]*store.Object, n)
	for i := range objects {
		objects[i] = storetest.OnNode(fmt.Sprintf("namespace-%02d/pod-%06d", i%50, i), fmt.Sprintf("node-%04d", i%(n/100)), "", 1)
		tree.Put(objects[i])
	}
	return tree, objects
}

func BenchmarkTreePut(b *testing.B) {
	for _, every := range []int{1, 100} {
		b.Run(fmt.Sprintf("objects=100k/puts-per-view=%d", every), func(b *testing.B) {
			tree, objects := nodes(100_000)
			n := 0
			b.ReportAllocs()
			for b.Loop() {
				tree.Put(objects[n*7919%len(objects)])
				if n++; n%every == 0 {
					tree.View()
				}
			}
		})
	}
}

func BenchmarkTreeViewAppendTo(b *testing.B) {
	tree, _ := nodes(10_000)
	v := tree.View()
	dst := make([]*store.Object, 0, v.Len())
	for b.Loop() {
		dst = v.AppendTo(dst[:0], "")
	}
}

// 100 objects of 100,000, and every other one, by index, and 100 by prefix.
func BenchmarkTreeViewRead(b *testing.B) {
	tree, _ := nodes(100_000)
	v := tree.View()
	b.Run("by-index", func(b *testing.B) { readByIndex(b, v, "node-0500", 100) })
	b.Run("most-by-index", func(b *testing.B) {
		tree := store.NewTree(storetest.ByNode)
		for o := range v.All("", "") {
			tree.Put(storetest.OnNode(o.Key, fmt.Sprintf("node-%d", tree.Len()%2), "", 1))
		}
		readByIndex(b, tree.View(), "node-0", 50_000)
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

func readByIndex(b *testing.B, v *store.TreeView, node string, want int) {
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
	tree, objects := nodes(10_000)
	is := store.TreeOf(tree.View())
	for _, o := range objects[:10] {
		is.Delete(o.Key)
	}
	for b.Loop() {
		if n := len(store.Diff(storetest.Things, tree.View(), is.View(), 1, 100, time.Time{})); n != 10 {
			b.Fatal(n)
		}
	}
}

// Loading objects in the order of their keys.
func BenchmarkTreeLoad(b *testing.B) {
	tree, _ := nodes(100_000)
	objects := tree.View().AppendTo(nil, "")
	b.ReportAllocs()
	for b.Loop() {
		store.NewTree(storetest.ByNode).Load(objects)
	}
}
