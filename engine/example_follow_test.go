package engine_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/watchmill/watchmill/engine"
)

// A copy of what is selected, kept up to date whatever happens to the watch.
func ExampleFollow() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	pods := newPods()
	defer pods.Close()
	pods.Create(ctx, Pod{Namespace: "default", Name: "web-1", Node: "n7"})

	onNode := map[string]Pod{}
	for update, err := range engine.Follow(ctx, pods, engine.WatchOptions{Fields: "spec.nodeName=n7"}) {
		if err != nil {
			fmt.Println("over:", err)
			return
		}
		if update.List != nil {
			clear(onNode)
			for _, o := range update.List.Items {
				onNode[o.Key] = o.Value
			}
			pods.Create(ctx, Pod{Namespace: "default", Name: "web-2", Node: "n7"})
		}
		for _, ev := range update.Events {
			if ev.Type == engine.Deleted {
				delete(onNode, ev.Key())
			} else {
				onNode[ev.Key()] = ev.Object.Value
			}
		}
		fmt.Println(len(onNode), "pods at revision", update.Revision)
		if len(onNode) == 2 {
			cancel()
		}
	}
	// Output:
	// 1 pods at revision 2
	// 2 pods at revision 3
	// over: context canceled
}

// A consumer that saves where it is with each update goes on there in the next process.
func ExampleUpdate() {
	ctx := context.Background()
	pods := newPods()
	defer pods.Close()
	pods.Create(ctx, Pod{Namespace: "default", Name: "web-1"})

	saved := ""
	run := func() {
		checkpoint, err := engine.ParseCheckpoint(saved)
		must(err)
		timeline, err := pods.Timeline(ctx)
		must(err)
		from, err := pods.RevisionOf(ctx, checkpoint) // zero the first time
		if errors.Is(err, engine.ErrForeignCheckpoint) {
			from, err = 0, nil // other storage: begin with a list
		}
		must(err)
		for update, err := range engine.Follow(ctx, pods, engine.WatchOptions{From: from, Timeline: timeline}) {
			must(err)
			if update.List != nil {
				fmt.Println("list of", len(update.List.Items))
			}
			for _, ev := range update.Events {
				fmt.Println(ev)
			}
			saved = engine.Checkpoint{Store: update.Timeline.Store(), Revision: update.Revision}.String()
			return // the process ends here
		}
	}
	run()
	pods.Create(ctx, Pod{Namespace: "default", Name: "web-2"})
	run()
	// Output:
	// list of 1
	// ADDED default/web-2@3
}

// A consumer that comes back opens its watch where it stood.
func ExampleResume() {
	ctx := context.Background()
	pods := newPods()
	defer pods.Close()
	stood, _ := pods.Create(ctx, Pod{Namespace: "default", Name: "web-1"})
	pods.Create(ctx, Pod{Namespace: "default", Name: "web-2"})

	startOver := func(all *engine.List[Pod]) { fmt.Println("start over with", len(all.Items), "pods") }
	w, err := engine.Resume(ctx, pods, engine.WatchOptions{From: stood.Revision}, startOver, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer w.Stop()
	events, err := w.Next(ctx)
	fmt.Println(events, err)
	// Output:
	// [ADDED default/web-2@3] <nil>
}
