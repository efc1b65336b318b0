package tree_test

import (
	"fmt"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/tree"
)

// release is an object whose value is its version.
type release struct {
	store.Object
	Version string
}

// A view is a moment of the tree: what is written later does not show in it.
func ExampleTree() {
	objects := tree.New()
	objects.Put(&(&release{store.Object{Key: "shop/web", Revision: 1}, "v1"}).Object)
	before := objects.View()
	objects.Put(&(&release{store.Object{Key: "shop/web", Revision: 2}, "v2"}).Object)

	version := func(o *store.Object) string { return store.As[release](o).Version }
	fmt.Println(version(before.Get("shop/web")), version(objects.View().Get("shop/web")))
	// Output: v1 v2
}

func ExampleView_All() {
	objects := tree.New()
	for _, key := range []string{"shop/web", "shop/db", "shop-old/web", "mail/smtp"} {
		objects.Put(&store.Object{Key: key})
	}
	for o := range objects.View().All("shop", "shop/db") {
		fmt.Println(o.Key)
	}
	// Output: shop/web
}

func ExampleView_Count() {
	objects := tree.New()
	for _, key := range []string{"shop/web", "shop/db", "shop-old/web", "mail/smtp"} {
		objects.Put(&store.Object{Key: key})
	}
	fmt.Println(objects.View().Count("", ""), objects.View().Count("shop", ""), objects.View().Count("shop", "shop/db"))
	// Output: 4 2 1
}

func ExampleView_ByIndex() {
	names := store.NewColumns("spec.nodeName")
	node, err := names.Attribute("spec.nodeName")
	if err != nil {
		fmt.Println(err)
		return
	}
	objects := tree.New(node)
	for key, name := range map[string]string{"web": "n1", "db": "n2", "cache": "n1"} {
		objects.Put(&store.Object{Key: key, Fields: []string{name}})
	}
	onN1, err := objects.View().ByIndex(node, "n1", "", "")
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
func ExampleFrom() {
	now := tree.New()
	now.Put(&store.Object{Key: "a"})

	what := tree.From(now.View())
	what.Delete("a")
	fmt.Println(now.Len(), what.Len())
	// Output: 1 0
}

// headers is a schema for objects that are nothing but a header.
var headers = &store.Schema{Clone: func(o *store.Object) *store.Object { c := *o; return &c }}

func ExampleDiff() {
	old, is := tree.New(), tree.New()
	old.Put(&store.Object{Key: "a", Revision: 3, Created: 3})
	old.Put(&store.Object{Key: "b", Revision: 5, Created: 5})
	is.Put(&store.Object{Key: "b", Revision: 14, Created: 5})
	is.Put(&store.Object{Key: "c", Revision: 12, Created: 12})

	for _, ev := range tree.Diff(headers, old.View(), is.View(), 10, 15, time.Time{}) {
		fmt.Println(ev)
	}
	// Output:
	// DELETED a@11 synthetic
	// ADDED c@12 synthetic
	// MODIFIED b@14 synthetic
}
