package memory_test

import (
	"context"
	"fmt"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/memory"
	"github.com/watchmill/watchmill/store/window"
)

// lamp is what is stored here: a header, and a value behind it.
type lamp struct {
	store.Object
	On bool
}

// lamps is what a backend in memory needs to know of them.
var lamps = store.Schema{
	Clone: func(o *store.Object) *store.Object { c := *store.As[lamp](o); return &c.Object },
	Size:  func(*store.Object) int { return 1 },
}

// newLamp returns a lamp to be written.
func newLamp(name string, on bool) *store.Object {
	return &(&lamp{Object: store.Object{Key: name}, On: on}).Object
}

// A backend is versioned storage: a list says at which revision it is, and a
// watch from there shows what happens next.
func Example() {
	ctx := context.Background()
	b, err := memory.New(lamps, memory.Options{FirstRevision: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close()

	list, _ := b.List(ctx, backend.ListOptions{})
	notified := make(chan struct{}, 1)
	w, _ := b.Watch(ctx, backend.WatchOptions{
		From: list.Revision,
		Notify: func() {
			select {
			case notified <- struct{}{}:
			default: // one is enough, however often
			}
		},
	})
	defer w.Close()

	dark, _ := b.Put(ctx, newLamp("hall", false), nil, backend.PutOptions{})
	lit, _ := b.Put(ctx, newLamp("hall", true), dark, backend.PutOptions{})
	_, _ = b.Remove(ctx, lit)

	for {
		batch, err := w.Next(100)
		if err != nil || len(batch.Events) == 0 {
			break
		}
		for _, ev := range batch.Events {
			fmt.Println(ev, store.As[lamp](ev.Object).On)
		}
	}
	// Output:
	// ADDED hall@2 false
	// MODIFIED hall@3 true
	// DELETED hall@4 true
}

func ExampleNew() {
	_, err := memory.New(lamps, memory.Options{Retain: window.Limits{MaxEvents: -1}})
	fmt.Println(err)
	// Output:
	// invalid configuration: Options.Retain.MaxEvents is -1, which is negative; zero means 1048576
}

// An emission passes through the history, but is not kept: it is for what
// happens, not for what is.
func ExampleBackend_Emit() {
	ctx := context.Background()
	b, err := memory.New(lamps, memory.Options{FirstRevision: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close()

	w, _ := b.Watch(ctx, backend.WatchOptions{Notify: func() {}})
	_, _ = b.Emit(ctx, newLamp("hall", true))
	batch, _ := w.Next(1)
	fmt.Println(batch.Events[0])
	_, err = b.Get(ctx, "hall")
	fmt.Println(err)
	// Output:
	// EMITTED hall@2
	// "hall": not found
}
