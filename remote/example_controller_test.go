package remote_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"github.com/watchmill/watchmill/controller"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/remote"
	"github.com/watchmill/watchmill/serve"
)

// A controller in a process of its own follows a replica of the server's objects. What it writes through
// the replica's store goes to the server.
func Example_controller() {
	ctx := context.Background()
	kind := registry.Config[Widget]{Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Widget", Status: true}}
	origin, err := registry.New(kind)
	if err != nil {
		panic(err)
	}
	defer origin.Close()
	server, err := serve.New(serve.Config{Resources: []serve.Provider{origin}})
	if err != nil {
		panic(err)
	}
	listening := httptest.NewServer(server)
	defer listening.Close()

	// From here on is what the other process does.
	format, err := registry.FormatOf(kind)
	if err != nil {
		panic(err)
	}
	there, err := remote.New(format, remote.Config{URL: listening.URL})
	if err != nil {
		panic(err)
	}
	defer there.Close()
	kind.Engine.Backend = there
	replica, err := registry.New(kind)
	if err != nil {
		panic(err)
	}
	defer replica.Close()
	ready, err := controller.New(controller.Config[Widget]{
		Source: replica.Engine().Source(), Host: replica.Engine().Host(), Name: "ready",
		Reconcile: func(ctx context.Context, key string, w *engine.Object[Widget]) (controller.Result, error) {
			if w == nil || w.Value.Status.Phase == "Ready" {
				return controller.Result{}, nil
			}
			_, err := replica.UpdateStatus(ctx, key, func(old *engine.Object[Widget]) (Widget, error) {
				next := old.Value
				next.Status.Phase = "Ready"
				return next, nil
			}, registry.WriteOptions{Manager: "ready"})
			return controller.Result{}, err // as while the server restarts: it is tried again
		},
	})
	if err != nil {
		panic(err)
	}
	defer ready.Close()

	made, err := origin.Create(ctx, widget("a", 1), registry.WriteOptions{})
	if err != nil {
		panic(err)
	}
	err = ready.Settle(ctx, made.Revision)
	if err != nil {
		panic(err)
	}
	done, err := origin.Engine().Get(ctx, "default/a", engine.GetOptions{})
	fmt.Println(done.Value.Status.Phase, err)
	// Output: Ready <nil>
}
