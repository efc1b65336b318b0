package store_test

import (
	"fmt"
	"time"

	"github.com/watchmill/watchmill/store"
)

// release is an object whose value is its version.
type release struct {
	store.Object
	Version string
}

// A view is a moment of the tree: what is written later does not show in it.
func ExampleTree() {
	tree := store.NewTree()
	tree.Put(&(&release{store.Object{Key: "shop/web", Revision: 1}, "v1"}).Object)
	before := tree.View()
	tree.Put(&(&release{store.Object{Key: "shop/web", Revision: 2}, "v2"}).Object)

	version := func(o *store.Object) string { return store.As[release](o).Version }
	fmt.Println(version(before.Get("shop/web")), version(tree.View().Get("shop/web")))
	// Output: v1 v2
}

func ExampleTreeView_All() {
	tree := store.NewTree()
	for _, key := range []string{"shop/web", "shop/db", "shop-old/web", "mail/smtp"} {
		tree.Put(&store.Object{Key: key})
	}
	for o := range tree.View().All("shop", "shop/db") {
		fmt.Println(o.Key)
	}
	// Output: shop/web
}

func ExampleTreeView_Count() {
	tree := store.NewTree()
	for _, key := range []string{"shop/web", "shop/db", "shop-old/web", "mail/smtp"} {
		tree.Put(&store.Object{Key: key})
	}
	fmt.Println(tree.View().Count("", ""), tree.View().Count("shop", ""), tree.View().Count("shop", "shop/db"))
	// Output: 4 2 1
}

func ExampleTreeView_ByIndex() {
	names := store.NewColumns("spec.nodeName")
	node, err := names.Attribute("spec.nodeName")
	if err != nil {
		fmt.Println(err)
		return
	}
	tree := store.NewTree(node)
	for key, name := range map[string]string{"web": "n1", "db": "n2", "cache": "n1"} {
		tree.Put(&store.Object{Key: key, Fields: []string{name}})
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
func ExampleTreeOf() {
	now := store.NewTree()
	now.Put(&store.Object{Key: "a"})

	what := store.TreeOf(now.View())
	what.Delete("a")
	fmt.Println(now.Len(), what.Len())
	// Output: 1 0
}

// headers is a schema for objects that are nothing but a header.
var headers = &store.Schema{Clone: func(o *store.Object) *store.Object { c := *o; return &c }}

func ExampleDiff() {
	old, is := store.NewTree(), store.NewTree()
	old.Put(&store.Object{Key: "a", Revision: 3, Created: 3})
	old.Put(&store.Object{Key: "b", Revision: 5, Created: 5})
	is.Put(&store.Object{Key: "b", Revision: 14, Created: 5})
	is.Put(&store.Object{Key: "c", Revision: 12, Created: 12})

	for _, ev := range store.Diff(headers, old.View(), is.View(), 10, 15, time.Time{}) {
		fmt.Println(ev)
	}
	// Output:
	// DELETED a@11 synthetic
	// ADDED c@12 synthetic
	// MODIFIED b@14 synthetic
}
