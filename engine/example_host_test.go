package engine_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// Nearly every engine needs a key. Wrong settings are refused before anything starts.
func ExampleNew() {
	pods, err := engine.New(engine.Config[Pod]{
		Key:    func(p Pod) string { return p.Namespace + "/" + p.Name },
		Fields: engine.Fields[Pod]{"spec.nodeName": func(p Pod) string { return p.Node }},
	})
	must(err)
	defer pods.Close()
	web, err := pods.Create(context.Background(), Pod{Namespace: "default", Name: "web", Node: "n7"})
	fmt.Println(web.Key, err)

	_, err = engine.New(engine.Config[Pod]{Index: []string{"spec.nodeName"}})
	var wrong *engine.ConfigError
	if errors.As(err, &wrong) {
		fmt.Println("wrong:", wrong.Field)
	}
	// Output:
	// default/web <nil>
	// wrong: Index
}

// Close ends every watch, and drops what was not delivered, which Stats names.
func ExampleEngine_Close() {
	ctx := context.Background()
	cfg, _, closeHost := simulated(nil)
	defer closeHost()
	pods, err := engine.New(cfg)
	must(err)
	w, err := pods.Watch(ctx, engine.WatchOptions{Name: "audit"})
	must(err)
	web, err := pods.Create(ctx, Pod{Namespace: "default", Name: "web"})
	must(err)
	must(pods.WaitForRevision(ctx, web.Revision))
	fmt.Println(pods.Close(), errors.Is(w.Err(), engine.ErrEngineClosed))
	for _, u := range pods.Stats().Undelivered {
		fmt.Println(u)
	}
	_, err = pods.Create(ctx, Pod{Namespace: "default", Name: "web-2"})
	fmt.Println(errors.Is(err, engine.ErrEngineClosed))
	// Output:
	// <nil> true
	// audit: 1 event behind, at revision 1
	// true
}

// A host knows what runs on it, without the types of the objects.
func ExampleHost_Engines() {
	host, err := engine.NewHost(engine.HostConfig{})
	must(err)
	cfg := podConfig()
	cfg.Host, cfg.Name, cfg.FirstRevision = host, "pods", 1
	pods, err := engine.New(cfg)
	must(err)
	must(pods.WaitForRevision(context.Background(), 1))
	orders := engine.NewTopicWith[Order](engine.TopicOptions{Host: host, Name: "orders"})
	for _, running := range host.Engines() {
		fmt.Println(running.Name(), running.Cached(), len(running.Watches()), "watches")
	}
	fmt.Println(pods.Close(), orders.Close(), len(host.Engines()), host.Close())
	// Output:
	// orders true 0 watches
	// pods true 0 watches
	// <nil> <nil> 0 <nil>
}

// greeter is an actor: its messages come one at a time.
type greeter struct{ to chan<- string }

func (g greeter) Receive(_ *actors.Context, name string) { g.to <- "hello, " + name }

// An actor of the program's own takes its turns on the host's workers, and ends with the host.
func ExampleSystemOf() {
	host, err := engine.NewHost(engine.HostConfig{})
	must(err)
	greeted := make(chan string)
	ref := actors.Spawn(engine.SystemOf(host), "greeter", func() actors.Behavior[string] { return greeter{greeted} }, actors.Options{})
	ref.Offer("web")
	fmt.Println(<-greeted, host.ActorNames())
	fmt.Println(host.Close(), ref.Offer("late"))
	// Output:
	// hello, web [greeter]
	// <nil> Gone
}

// Code that waits for what an engine does waits by Await, so that it also works where nothing
// runs by itself: there Await runs the engine.
func ExampleHost_Await() {
	ctx := context.Background()
	cfg, _, closeHost := simulated(nil)
	defer closeHost()
	pods, err := engine.New(cfg)
	must(err)
	defer pods.Close()
	handled := make(chan struct{})
	_, err = pods.Handle(ctx, engine.WatchOptions{}, func(ev engine.Event[Pod]) {
		fmt.Println(ev)
		close(handled)
	})
	must(err)
	_, err = pods.Create(ctx, Pod{Namespace: "default", Name: "web"})
	must(err)
	fmt.Println(pods.Host().Deterministic(), pods.Host().Await(ctx, handled))
	fmt.Println(pods.Host().Await(ctx, make(chan struct{})))
	// Output:
	// ADDED default/web@2
	// true <nil>
	// deterministic run is idle: nothing is left to run before the clock moves
}

// Why watches ended can be read after the engine was closed, too; the newest end is the first.
func ExampleView_Ends() {
	ctx := context.Background()
	cfg, _, closeHost := simulated(nil)
	defer closeHost()
	pods, err := engine.New(cfg)
	must(err)
	running := pods.Host().Engines()[0]
	audit, err := pods.Watch(ctx, engine.WatchOptions{Name: "audit"})
	must(err)
	_, err = pods.Watch(ctx, engine.WatchOptions{Name: "backup"})
	must(err)
	audit.Stop()
	must(pods.Close())
	for _, end := range running.Ends() {
		fmt.Println(end.Name, end.Reason())
	}
	// Output:
	// backup closed
	// audit stopped
}

// Two engines of one name are shown apart by what identifies them.
func ExampleView_ID() {
	cfg, _, closeHost := simulated(nil)
	defer closeHost()
	for range 2 {
		pods, err := engine.New(cfg)
		must(err)
		defer pods.Close()
	}
	running := cfg.Host.Engines()
	fmt.Println(running[0].Name() == running[1].Name(), running[0].ID() == running[1].ID())
	// Output: true false
}

// Code beside an engine takes the time from its host, so that a test moves both at once.
func ExampleHost_Clock() {
	clock := engine.NewVirtualClock(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	host, err := engine.NewHost(engine.HostConfig{Clock: clock})
	must(err)
	defer host.Close()
	begun := host.Clock().Now()
	clock.Advance(time.Minute)
	fmt.Println(host.Clock().Now().Sub(begun))
	// Output: 1m0s
}

// A virtual clock moves only when it is told to, and with it all timers of an engine.
func ExampleNewVirtualClock() {
	ctx := context.Background()
	cfg, clock, closeHost := simulated(nil)
	defer closeHost()
	pods, err := engine.New(cfg)
	must(err)
	defer pods.Close()
	web, err := pods.CreateWith(ctx, Pod{Namespace: "default", Name: "web"}, engine.CreateOptions{TTL: time.Hour})
	must(err)
	w, err := pods.Watch(ctx, engine.WatchOptions{From: web.Revision})
	must(err)
	clock.Advance(2 * time.Hour)
	events, err := w.Next(ctx)
	must(err)
	fmt.Println(events[0])
	// Output: DELETED default/web@3
}

// Any backend is a source for informers and object caches, without an engine.
func ExampleSourceOf() {
	storage, err := memory.New(podConfig().Schema(), memory.Options{})
	must(err)
	defer storage.Close()
	source := engine.SourceOf[Pod](storage)
	fmt.Println(source.Type(), source.Validate())
	fmt.Println(engine.SourceOf[Pod](nil).Validate() != nil)
	// Output:
	// engine_test.Pod <nil>
	// true
}

// The end of a watch has its reason as an error for programs, and as a word for metrics.
func ExampleWatchEnd_Reason() {
	for _, why := range []error{engine.ErrStopped, engine.ErrExpired, engine.ErrSlowConsumer, errors.New("another")} {
		fmt.Println(engine.WatchEnd{Name: "audit", Err: why}.Reason())
	}
	// Output:
	// stopped
	// expired
	// slow
	// failed
}

// The randomness of a program that runs on a host is as reproducible as the host's own.
func ExampleHost_NewRand() {
	draw := func() uint64 {
		host, err := engine.NewHost(engine.HostConfig{Seed: 42})
		must(err)
		defer host.Close()
		return host.NewRand().Uint64()
	}
	first, again := draw(), draw()
	fmt.Println(first == again)
	// Output: true
}

// The storage below an engine can be read by itself, as by a tool.
func ExampleEngine_Backend() {
	ctx := context.Background()
	pods := newNodes(ctx)
	defer pods.Close()
	web, err := pods.Backend().Get(ctx, "default/web-2")
	fmt.Println(web.Key, web.Fields, err)
	// Output: default/web-2 [n2] <nil>
}
