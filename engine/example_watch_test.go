package engine_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/watchmill/watchmill/engine"
)

// A watch may start with the present state. A bookmark ends it.
func ExampleEngine_Watch() {
	ctx := context.Background()
	pods := newNodes(ctx)
	defer pods.Close()
	w, err := pods.Watch(ctx, engine.WatchOptions{Fields: "spec.nodeName=n1", InitialState: true, Bookmarks: true})
	must(err)
	defer w.Stop()
	for ev, err := range w.Events() {
		if err != nil {
			fmt.Println(err)
			return
		}
		if ev.Is(engine.InitialEnd) {
			fmt.Println("that was the state")
			return
		}
		fmt.Println(ev.Type, ev.Key())
	}
	// Output:
	// ADDED default/web-1
	// ADDED default/web-3
	// that was the state
}

func ExampleEngine_Handle() {
	ctx := context.Background()
	pods := newPods()
	defer pods.Close()
	handled := make(chan struct{})
	w, err := pods.Handle(ctx, engine.WatchOptions{Name: "web", Key: "default/web-1"}, func(ev engine.Event[Pod]) {
		fmt.Println(ev.Type, ev.Object.Value.Node)
		close(handled)
	})
	must(err)
	_, _ = pods.Create(ctx, Pod{Namespace: "default", Name: "web-1", Node: "n1"})
	<-handled
	w.Stop()
	fmt.Println(w.Err())
	// Output:
	// ADDED n1
	// web: watch stopped
}

func ExampleWatch_Next() {
	ctx := context.Background()
	pods := newNodes(ctx)
	defer pods.Close()
	w, err := pods.Watch(ctx, engine.WatchOptions{From: 1})
	must(err)
	for seen := 0; seen < 3; {
		events, err := w.Next(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		seen += len(events)
	}
	fmt.Println("delivered", w.Delivered(), "lag", w.Lag())
	// Output: delivered 3 lag 0
}

func ExampleWatch_Batches() {
	ctx := context.Background()
	pods := newNodes(ctx)
	defer pods.Close()
	w, err := pods.Watch(ctx, engine.WatchOptions{From: 1, Timeout: time.Hour})
	must(err)
	seen := 0
	for events, err := range w.Batches() {
		if err != nil {
			fmt.Println(err)
			return
		}
		if seen += len(events); seen == 3 {
			break // the watch goes on: range again, or stop it
		}
	}
	fmt.Println(seen, "events")
	// Output: 3 events
}

func ExampleWatch_Chan() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	pods := newNodes(ctx)
	defer pods.Close()
	w, err := pods.Watch(ctx, engine.WatchOptions{Name: "first three", From: 1})
	must(err)
	seen := 0
	for range w.Chan() {
		if seen++; seen == 3 {
			cancel()
		}
	}
	fmt.Println(seen, "events, then:", w.Err())
	// Output: 3 events, then: first three: watch stopped: context canceled
}

// What a handler uses can be released when its last call is over.
func ExampleWatch_Wait() {
	ctx := context.Background()
	pods := newPods()
	defer pods.Close()
	nodes := make(chan string, 1)
	w, _ := pods.Handle(ctx, engine.WatchOptions{}, func(ev engine.Event[Pod]) { nodes <- ev.Object.Value.Node })
	_, _ = pods.Create(ctx, Pod{Namespace: "default", Name: "web-1", Node: "n7"})
	fmt.Println(<-nodes)
	w.Stop()
	_ = w.Wait(ctx)
	close(nodes) // no call sends to it any more
	// Output: n7
}

// A watch lasts as long as its context, and ends with its cause. A bookmark shortly
// before says where the next watch goes on.
func ExampleWatchOptions_timeout() {
	errPatience := errors.New("that was long enough")
	ctx, cancel := context.WithTimeoutCause(context.Background(), 10*time.Millisecond, errPatience)
	defer cancel()
	pods := newPods()
	defer pods.Close()
	w, err := pods.Watch(ctx, engine.WatchOptions{From: 1, Bookmarks: true})
	if err == nil {
		for range w.Events() {
		}
		err = w.Err()
	}
	fmt.Println(errors.Is(err, errPatience))
	// Output: true
}

// A consumer that was away goes on from where it was.
func ExampleWatch_Revision() {
	ctx := context.Background()
	pods := newNodes(ctx)
	defer pods.Close()
	first, err := pods.Watch(ctx, engine.WatchOptions{From: 1})
	must(err)
	for ev := range first.Events() {
		fmt.Println("first:", ev.Revision)
		break // two more are left
	}
	first.Stop()
	second, err := pods.Watch(ctx, engine.WatchOptions{From: first.Revision()})
	must(err)
	for ev := range second.Events() {
		fmt.Println("second:", ev.Revision)
		if ev.Revision == 4 {
			break
		}
	}
	second.Stop()
	fmt.Println("second is at", second.Revision())
	// Output:
	// first: 2
	// second: 3
	// second: 4
	// second is at 4
}

// Any goroutine may stop a watch. Its consumer is told why it ended.
func ExampleWatch_Stop() {
	ctx := context.Background()
	pods := newPods()
	defer pods.Close()
	w, err := pods.Watch(ctx, engine.WatchOptions{Name: "audit"})
	must(err)
	fmt.Println(w.Err())
	w.Stop()
	<-w.Done()
	fmt.Println(errors.Is(w.Err(), engine.ErrStopped))
	_, err = w.Next(ctx)
	fmt.Println(err)
	// Output:
	// <nil>
	// true
	// audit: watch stopped
}

// Lag counts what is pending. It depends on no clock.
func ExampleWatch_Lag() {
	ctx := context.Background()
	cfg, _, closeHost := simulated(nil)
	defer closeHost()
	pods, err := engine.New(cfg)
	must(err)
	defer pods.Close()
	w, err := pods.Watch(ctx, engine.WatchOptions{Buffer: 2})
	must(err)
	for _, name := range []string{"web-1", "web-2", "web-3"} {
		o, err := pods.Create(ctx, Pod{Namespace: "default", Name: name})
		must(err)
		must(pods.WaitForRevision(ctx, o.Revision))
	}
	fmt.Println(w.Delivered(), "delivered,", w.Lag(), "pending")
	_, err = w.Next(ctx)
	must(err)
	fmt.Println(w.Delivered(), "delivered,", w.Lag(), "pending")
	// Output:
	// 0 delivered, 3 pending
	// 3 delivered, 0 pending
}

// A conflating watch that the window has moved past gets the newest state in place of those
// that it has missed, which it counts.
func ExampleWatch_Lost() {
	ctx := context.Background()
	cfg, _, closeHost := simulated(nil)
	defer closeHost()
	cfg.Window = engine.Window{MaxEvents: 100}
	pods, err := engine.New(cfg)
	must(err)
	defer pods.Close()
	w, err := pods.Watch(ctx, engine.WatchOptions{Policy: engine.Conflate, Buffer: 10})
	must(err)
	for i := range 5000 {
		o, err := pods.Put(ctx, Pod{Namespace: "default", Name: "web", Node: fmt.Sprint("n", i)})
		must(err)
		must(pods.WaitForRevision(ctx, o.Revision))
	}
	var last engine.Event[Pod]
	for w.Lag() > 0 {
		events, err := w.Next(ctx)
		must(err)
		last = events[len(events)-1]
	}
	fmt.Println(last.Object.Value.Node, "is the newest")
	fmt.Println("some are left out:", w.Lost() > 0, "and counted:", w.Delivered()+w.Lost())
	// Output:
	// n4999 is the newest
	// some are left out: true and counted: 5000
}

// An event says what happened to one object, and how the state was before.
func ExampleEvent() {
	ctx := context.Background()
	pods := newPods()
	defer pods.Close()
	must(pods.WaitForRevision(ctx, 1)) // so that the window begins before the first write
	for _, node := range []string{"n1", "n2"} {
		_, err := pods.Put(ctx, Pod{Namespace: "default", Name: "web", Node: node})
		must(err)
	}
	_, err := pods.Delete(ctx, "default/web", engine.DeleteOptions{})
	must(err)
	w, err := pods.Watch(ctx, engine.WatchOptions{From: 1})
	must(err)
	for ev := range w.Events() {
		fmt.Println(ev, "on", ev.Object.Value.Node, "new:", ev.Prev == nil)
		if ev.Type == engine.Deleted {
			break
		}
	}
	w.Stop()
	// Output:
	// ADDED default/web@2 on n1 new: true
	// MODIFIED default/web@3 on n2 new: false
	// DELETED default/web@4 on n2 new: false
}

// Marks tell initial state from changes.
func ExampleEvent_Is() {
	ctx := context.Background()
	pods := newNodes(ctx)
	defer pods.Close()
	w, err := pods.Watch(ctx, engine.WatchOptions{InitialState: true, Bookmarks: true})
	must(err)
	objects := 0
	for ev := range w.Events() {
		if ev.Is(engine.InitialEnd) {
			break
		}
		if ev.Is(engine.Initial) {
			objects++
		}
	}
	w.Stop()
	fmt.Println(objects, "objects are there")
	// Output: 3 objects are there
}

// The policy of a watch says what happens when its consumer stays behind. Here the window
// moves past a watch that must see everything: it ends, and names where to go on.
func ExamplePolicy() {
	ctx := context.Background()
	cfg, _, closeHost := simulated(nil)
	defer closeHost()
	cfg.Window = engine.Window{MaxEvents: 100}
	pods, err := engine.New(cfg)
	must(err)
	defer pods.Close()
	w, err := pods.Watch(ctx, engine.WatchOptions{Policy: engine.Park, Buffer: 10})
	must(err)
	for i := range 5000 {
		o, err := pods.Put(ctx, Pod{Namespace: "default", Name: "web", Node: fmt.Sprint("n", i)})
		must(err)
		must(pods.WaitForRevision(ctx, o.Revision))
	}
	fmt.Println("stalled:", w.Stalled())
	for err == nil {
		_, err = w.Next(ctx) // first what is left of the window's past
	}
	fmt.Println(errors.Is(err, engine.ErrExpired))
	list, err := pods.List(ctx, engine.ListOptions{Read: engine.NotOlderThan(w.Revision())})
	fmt.Println("list again:", len(list.Items), "object, and watch from the list's revision", err)
	// Output:
	// stalled: true
	// true
	// list again: 1 object, and watch from the list's revision <nil>
}
