package engine_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/watchmill/watchmill/engine"
)

// One object, by its key.
func ExampleEngine_Get() {
	ctx := context.Background()
	pods := newNodes(ctx)
	defer pods.Close()
	web, err := pods.Get(ctx, "default/web-2", engine.GetOptions{})
	fmt.Println(web.Value.Node, err)
	_, err = pods.Get(ctx, "default/web-9", engine.GetOptions{})
	fmt.Println(errors.Is(err, engine.ErrNotFound))
	// Output:
	// n2 <nil>
	// true
}

// Latest sees every write that was acknowledged before, also of other processes.
func ExampleLatest() {
	ctx := context.Background()
	pods := newPods()
	defer pods.Close()
	_, err := pods.Create(ctx, Pod{Namespace: "default", Name: "web", Node: "n7"})
	must(err)
	web, err := pods.Get(ctx, "default/web", engine.GetOptions{Read: engine.Latest()})
	fmt.Println(web.Value.Node, err)
	// Output: n7 <nil>
}

// A program that reads its own writes names their revision, and no read goes to the backend.
func ExampleNotOlderThan() {
	ctx := context.Background()
	pods := newPods()
	defer pods.Close()
	written, err := pods.Create(ctx, Pod{Namespace: "default", Name: "web", Node: "n7"})
	must(err)
	list, err := pods.List(ctx, engine.ListOptions{Read: engine.NotOlderThan(written.Revision)})
	fmt.Println(len(list.Items), list.Revision >= written.Revision, err)
	// Output: 1 true <nil>
}

// Cached never waits. What it sees may be older than the last write, unless the program has
// waited for that.
func ExampleCached() {
	ctx := context.Background()
	pods := newPods()
	defer pods.Close()
	written, err := pods.Create(ctx, Pod{Namespace: "default", Name: "web", Node: "n7"})
	must(err)
	must(pods.WaitForRevision(ctx, written.Revision))
	web, err := pods.Get(ctx, "default/web", engine.GetOptions{Read: engine.Cached()})
	fmt.Println(web.Value.Node, err)
	// Output: n7 <nil>
}

// The past can be read as far as it is kept.
func ExampleExactly() {
	ctx := context.Background()
	pods := newNodes(ctx)
	defer pods.Close()
	for _, rev := range []engine.Revision{2, 4} {
		list, err := pods.List(ctx, engine.ListOptions{Read: engine.Exactly(rev)})
		fmt.Println("at", list.Revision, "there are", len(list.Items), err)
	}
	must(pods.Compact(ctx, 4))
	_, err := pods.List(ctx, engine.ListOptions{Read: engine.Exactly(2)})
	fmt.Println(errors.Is(err, engine.ErrExpired))
	// Output:
	// at 2 there are 1 <nil>
	// at 4 there are 3 <nil>
	// true
}

// The cache's revision grows with every change that it has applied.
func ExampleEngine_Revision() {
	ctx := context.Background()
	pods := newNodes(ctx)
	defer pods.Close()
	fmt.Println(pods.Revision())
	// Output: 4
}

// The counters of an engine say what it holds.
func ExampleEngine_Stats() {
	ctx := context.Background()
	pods := newNodes(ctx)
	defer pods.Close()
	s := pods.Stats()
	fmt.Println(s.Ready, s.Objects, "objects,", s.Events, "changes,", s.WindowEvents, "to resume from")
	// Output: true 3 objects, 3 changes, 3 to resume from
}

// A health check asks whether the engine can serve, and whether it ever will.
func ExampleEngine_Readiness() {
	ctx := context.Background()
	pods := newNodes(ctx)
	defer pods.Close()
	now := pods.Readiness()
	fmt.Println(now.Ready, now.Ended, now.Generation)
	// Output: true false 1
}

// A checkpoint is the text that a consumer saves, to continue after a restart. One of other
// storage is refused.
func ExampleEngine_Checkpoint() {
	ctx := context.Background()
	pods, other := newNodes(ctx), newNodes(ctx)
	defer pods.Close()
	defer other.Close()
	checkpoint, err := pods.Checkpoint(ctx, 3)
	must(err)
	saved := checkpoint.String()

	restored, err := engine.ParseCheckpoint(saved)
	must(err)
	from, err := pods.RevisionOf(ctx, restored)
	fmt.Println(from, err)
	_, err = other.RevisionOf(ctx, restored)
	fmt.Println(errors.Is(err, engine.ErrForeignCheckpoint), errors.Is(err, engine.ErrExpired))
	// Output:
	// 3 <nil>
	// true true
}

// The revision of a checkpoint is where the next watch continues.
func ExampleEngine_RevisionOf() {
	ctx := context.Background()
	pods := newNodes(ctx)
	defer pods.Close()
	saved, err := pods.Checkpoint(ctx, 3)
	must(err)
	from, err := pods.RevisionOf(ctx, saved)
	must(err)
	w, err := pods.Watch(ctx, engine.WatchOptions{From: from})
	must(err)
	events, err := w.Next(ctx)
	fmt.Println(len(events), events[0].Revision, err)
	// Output: 1 4 <nil>
}

// A text that is no checkpoint is an error, and no text is none.
func ExampleParseCheckpoint() {
	c, err := engine.ParseCheckpoint("7@store")
	fmt.Println(c.Revision, c.Store, err)
	c, err = engine.ParseCheckpoint("")
	fmt.Println(c == engine.Checkpoint{}, err)
	_, err = engine.ParseCheckpoint("seven")
	fmt.Println(errors.Is(err, engine.ErrConfig))
	// Output:
	// 7 store <nil>
	// true <nil>
	// true
}
