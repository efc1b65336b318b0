package engine_test

import (
	"context"
	"fmt"

	"github.com/watchmill/watchmill/store/backend"
)

// A mirror lists, then watches from the list's revision. Package informer has
// one that is ready to use.
func ExampleEngine_Source() {
	ctx := context.Background()
	pods := newPods()
	defer pods.Close()
	pods.Create(ctx, Pod{Namespace: "default", Name: "db"})

	source := pods.Source()
	list, err := source.List(ctx, backend.ListOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("listed", len(list.Items))
	more := make(chan struct{}, 1)
	watch, err := source.Watch(ctx, backend.WatchOptions{From: list.Revision, Notify: func() {
		select {
		case more <- struct{}{}:
		default: // it has been told already
		}
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer watch.Close()
	pods.Create(ctx, Pod{Namespace: "default", Name: "web"})
	for {
		batch, err := watch.Next(100)
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, ev := range batch.Events {
			fmt.Println(ev.Type, ev.Key())
			return
		}
		<-more
	}
	// Output:
	// listed 1
	// ADDED default/web
}
