package remote_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/remote"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// overServer returns storage over a server that holds one widget, at revision 2, and the
// function that closes both.
func overServer() (*remote.Backend, *registry.Format, func()) {
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	kind := registry.Config[Widget]{
		Kind:   registry.Kind{Group: "example.com", Version: "v1", Kind: "Widget"},
		Engine: engine.Config[Widget]{FirstRevision: 1}, // so that the examples' revisions are small
	}
	origin, err := registry.New(kind)
	must(err)
	_, err = origin.Create(context.Background(), widget("a", 1), registry.WriteOptions{})
	must(err)
	server, err := serve.New(serve.Config{Resources: []serve.Provider{origin}})
	must(err)
	listening := httptest.NewServer(server)
	format, err := registry.FormatOf(kind)
	must(err)
	there, err := remote.New(format, remote.Config{URL: listening.URL})
	must(err)
	return there, format, func() {
		_ = there.Close()
		listening.Close()
		_ = origin.Close()
	}
}

func size(o *store.Object) int { return store.As[engine.Object[Widget]](o).Value.Spec.Size }

// An answer of the server that means an error of storage matches that.
func ExampleBackend_Get() {
	there, _, closeAll := overServer()
	defer closeAll()
	o, err := there.Get(context.Background(), "default/a")
	fmt.Println(o.Key, o.Revision, size(o), err)
	_, err = there.Get(context.Background(), "default/b")
	var status *remote.StatusError
	fmt.Println(errors.Is(err, store.ErrNotFound), errors.As(err, &status), status.Status.Code)
	// Output:
	// default/a 2 1 <nil>
	// true true 404
}

func ExampleBackend_List() {
	there, _, closeAll := overServer()
	defer closeAll()
	list, err := there.List(context.Background(), backend.ListOptions{Prefix: "default"})
	fmt.Println(len(list.Items), "at", list.Revision, err)
	// Output: 1 at 2 <nil>
}

// A write depends on the state that it was made from, and the server decides.
func ExampleBackend_Put() {
	ctx := context.Background()
	there, format, closeAll := overServer()
	defer closeAll()
	before, err := there.Get(ctx, "default/a")
	if err != nil {
		panic(err)
	}
	for range 2 {
		schema := format.Schema()
		draft := schema.Clone(before)
		store.As[engine.Object[Widget]](draft).Value.Spec.Size++
		after, err := there.Put(ctx, draft, before, backend.PutOptions{})
		if errors.Is(err, store.ErrConflict) {
			fmt.Println("it has changed since")
			continue
		}
		fmt.Println(size(after), "at", after.Revision, err)
	}
	// Output:
	// 2 at 3 <nil>
	// it has changed since
}

func ExampleBackend_Remove() {
	ctx := context.Background()
	there, _, closeAll := overServer()
	defer closeAll()
	before, err := there.Get(ctx, "default/a")
	if err != nil {
		panic(err)
	}
	gone, err := there.Remove(ctx, before)
	fmt.Println(gone.Revision, err)
	_, err = there.Remove(ctx, before)
	fmt.Println(errors.Is(err, store.ErrNotFound))
	// Output:
	// 3 <nil>
	// true
}

// A watch is pulled: it notifies when there is something to take.
func ExampleBackend_Watch() {
	ctx := context.Background()
	there, _, closeAll := overServer()
	defer closeAll()
	notified := make(chan struct{}, 1)
	w, err := there.Watch(ctx, backend.WatchOptions{From: 2, Notify: func() {
		select {
		case notified <- struct{}{}:
		default: // it was notified already
		}
	}})
	if err != nil {
		panic(err)
	}
	defer w.Close()
	_, err = there.ForwardCreate(ctx, "default", []byte(`{"metadata":{"name":"b"},"spec":{"size":7}}`), registry.WriteOptions{})
	if err != nil {
		panic(err)
	}
	for {
		batch, err := w.Next(10)
		if err != nil {
			panic(err)
		}
		for _, ev := range batch.Events {
			fmt.Println(ev.Type, ev.Key(), ev.Revision)
			return
		}
		<-notified
	}
	// Output: ADDED default/b 3
}

// The revisions are the server's.
func ExampleBackend_Revision() {
	there, _, closeAll := overServer()
	defer closeAll()
	fmt.Println(there.Revision(context.Background()))
	// Output: 2 <nil>
}

// Two backends over one server have the same storage, and their revisions can be compared.
func ExampleBackend_StoreID() {
	ctx := context.Background()
	there, _, closeAll := overServer()
	defer closeAll()
	other, _, closeOther := overServer()
	defer closeOther()
	first, err := there.StoreID(ctx)
	if err != nil {
		panic(err)
	}
	second, err := other.StoreID(ctx)
	if err != nil {
		panic(err)
	}
	again, err := there.StoreID(ctx)
	fmt.Println(first == second, first == again, err)
	// Output: false true <nil>
}

// Writes are passed on as JSON, and the server's rules decide.
func ExampleBackend_ForwardUpdate() {
	ctx := context.Background()
	there, format, closeAll := overServer()
	defer closeAll()
	answer, created, err := there.ForwardUpdate(ctx, "default/a", "", []byte(`{"metadata":{"name":"a","resourceVersion":"2"},"spec":{"size":5}}`), registry.WriteOptions{})
	if err != nil {
		panic(err)
	}
	o, err := format.Decode(answer)
	fmt.Println(size(o), o.Revision, "created:", created, err)
	answer, at, err := there.ForwardDelete(ctx, "default/a", registry.DeleteOptions{})
	fmt.Println(answer == nil, at, err)
	// Output:
	// 5 3 created: false <nil>
	// true 4 <nil>
}
