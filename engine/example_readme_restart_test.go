package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/watchmill/watchmill/clock/clocktest"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store/backend/bolt"
)

// The README's examples of engines that end and go on.

// Draining a topic has everything handled, or names the handlers that are behind.
func Example_readmeDraining() {
	ctx := context.Background()
	orders := engine.NewTopic[Order]()
	held := make(chan struct{})
	var billing *engine.Subscription
	billing, _ = orders.SubscribeWith(ctx, engine.SubscribeOptions{Name: "billing"}, func(Order) {
		close(held)
		<-billing.Done() // stuck until the topic gives up on it
	})
	for n := range 3 {
		_, _ = orders.Publish(ctx, Order{ID: n})
	}
	<-held
	within, cancel := context.WithCancel(ctx)
	cancel() // at once, in place of a timeout

	err := orders.Drain(within) // everything that was published is handled, or err names the handlers that are behind
	var late *engine.UndeliveredError
	if errors.As(err, &late) {
		fmt.Println(late.Watches[0].Name, "is", late.Watches[0].Events, "behind") // billing is 3 behind
	}
	// Output: billing is 3 behind
}

// An engine that lives again knows that a revision is not its own.
func Example_readmeRestarting() {
	ctx := context.Background()
	restarted := func() *engine.Engine[Pod] {
		clocktest.Tick() // the first revision is the clock's
		pods, err := engine.New(podConfig())
		if err != nil {
			panic(err)
		}
		return pods
	}
	pods := restarted()
	web, _ := pods.Create(ctx, Pod{Namespace: "default", Name: "web-1"})
	saved := web.Revision
	_ = pods.Close()

	pods = restarted() // a new engine; the old one's objects are gone
	defer func() { _ = pods.Close() }()
	_ = pods.WaitForRevision(ctx, 1)
	_, _ = pods.Create(ctx, Pod{Namespace: "default", Name: "web-2"})
	_, err := pods.Watch(ctx, engine.WatchOptions{From: saved})
	fmt.Println(errors.Is(err, engine.ErrExpired)) // true: list again, and watch from the list's revision
	// Output: true
}

// An engine over a file goes on where it was, and so do its consumers.
func Example_readmeLasting() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "watchmill")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path, saved := filepath.Join(dir, "state.db"), ""
	run := func(names ...string) {
		config := podConfig()
		config.FirstRevision = 0 // the file has one of its own
		file, err := bolt.Open(path, bolt.Options{})
		if err != nil {
			panic(err)
		}
		defer file.Close()
		config.Backend, err = bolt.New(file, "pods", bolt.Config{Schema: config.Schema()})
		if err != nil {
			panic(err)
		}
		pods, err := engine.New(config)
		if err != nil {
			panic(err)
		}
		defer pods.Close()
		err = pods.WaitReady(ctx) // the cache has read the file
		if err != nil {
			panic(err)
		}
		timeline, err := pods.Timeline(ctx)
		if err != nil {
			panic(err)
		}
		for _, name := range names {
			_, _ = pods.Create(ctx, Pod{Namespace: "default", Name: name})
		}

		checkpoint, _ := engine.ParseCheckpoint(saved) // "" the first time
		from, err := pods.RevisionOf(ctx, checkpoint)  // an ErrExpired if it is of another file
		if err != nil || from == 0 {
			list, _ := pods.List(ctx, engine.ListOptions{}) // begin with these
			from = list.Revision
		}
		w, _ := pods.Watch(ctx, engine.WatchOptions{From: from, Timeline: timeline})
		_, _ = pods.Create(ctx, Pod{Namespace: "default", Name: "last of " + names[0]})
		for ev, err := range w.Events() {
			if err != nil {
				break
			}
			fmt.Println(ev.Type, ev.Object.Key)
			saved = engine.Checkpoint{Store: timeline.Store(), Revision: w.Revision()}.String()
			break // the process ends here
		}
	}
	run("a", "b")
	run("c", "d")
	run("e")
	// Output:
	// ADDED default/last of a
	// ADDED default/c
	// ADDED default/d
}
