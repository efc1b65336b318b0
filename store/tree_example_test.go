package store_test

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/watchmill/watchmill/store"
)

// A view is a moment of the tree: what is written later does not show in it.
func ExampleTree() {
	tree := store.NewTree[string]()
	tree.Put(&store.Object[string]{Key: "shop/web", Value: "v1", Revision: 1})
	before := tree.View()
	tree.Put(&store.Object[string]{Key: "shop/web", Value: "v2", Revision: 2})

	fmt.Println(before.Get("shop/web").Value, tree.View().Get("shop/web").Value)
	// Output: v1 v2
}

func ExampleTreeView_All() {
	tree := store.NewTree[string]()
	for _, key := range []string{"shop/web", "shop/db", "shop-old/web", "mail/smtp"} {
		tree.Put(&store.Object[string]{Key: key})
	}
	for o := range tree.View().All("shop", "shop/db") {
		fmt.Println(o.Key)
	}
	// Output: shop/web
}

func ExampleTreeView_ByIndex() {
	node := store.FieldAttribute("spec.nodeName")
	tree := store.NewTree[string](node)
	for key, name := range map[string]string{"web": "n1", "db": "n2", "cache": "n1"} {
		tree.Put(&store.Object[string]{Key: key, Fields: fields.Set{node.Name: name}})
	}
	onN1, err := tree.View().ByIndex(node, "n1", "", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	for o := range onN1 {
		fmt.Println(o.Key)
	}
	// Output:
	// cache
	// web
}

// Tree goes on from a view, here to see what would be.
func ExampleTreeView_Tree() {
	now := store.NewTree[string]()
	now.Put(&store.Object[string]{Key: "a"})

	what := now.View().Tree()
	what.Delete("a")
	fmt.Println(now.Len(), what.Len())
	// Output: 1 0
}

func ExampleDiff() {
	old, is := store.NewTree[string](), store.NewTree[string]()
	old.Put(&store.Object[string]{Key: "a", Revision: 3, Created: 3})
	old.Put(&store.Object[string]{Key: "b", Revision: 5, Created: 5})
	is.Put(&store.Object[string]{Key: "b", Revision: 14, Created: 5})
	is.Put(&store.Object[string]{Key: "c", Revision: 12, Created: 12})

	for _, ev := range store.Diff(old.View(), is.View(), 10, 15, time.Time{}) {
		fmt.Println(ev)
	}
	// Output:
	// DELETED a@11 synthetic
	// ADDED c@12 synthetic
	// MODIFIED b@14 synthetic
}
