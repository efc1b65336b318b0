package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
	"github.com/watchmill/watchmill/engine/informer"
)

// The examples of the README, which quotes them line by line.

type Pod struct {
	Namespace, Name, Node string
	Labels                labels.Set
}

type Order struct {
	ID    int
	Total string
}

func newPods() *engine.Engine[Pod] {
	pods, err := engine.New(engine.Config[Pod]{
		Key:    func(p Pod) string { return p.Namespace + "/" + p.Name },
		Labels: func(p Pod) labels.Set { return p.Labels },
		Fields: engine.Fields[Pod]{"spec.nodeName": func(p Pod) string { return p.Node }},

		FirstRevision: 1, // so that the examples' revisions are small
	})
	if err != nil {
		panic(err)
	}
	return pods
}

func podConfig() engine.Config[Pod] {
	return engine.Config[Pod]{Key: func(p Pod) string { return p.Namespace + "/" + p.Name }}
}

func TestPods(t *testing.T) {
	e := enginetest.New(t, podConfig())
	w := e.Watch(engine.WatchOptions{})
	e.Create(Pod{Namespace: "default", Name: "web-1"})
	enginetest.ExpectExactly(t, w, enginetest.Added(Pod{Namespace: "default", Name: "web-1"}))
}

func Example_readmeEngine() {
	ctx := context.Background()
	pods := newPods()
	defer pods.Close()

	web, err := pods.Create(ctx, Pod{Namespace: "default", Name: "web-1", Node: "n7"})
	if err != nil {
		fmt.Println(err)
		return
	}
	w, err := pods.Watch(ctx, engine.WatchOptions{Name: "n7", Fields: "spec.nodeName=n7", From: web.Revision})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _ = pods.Create(ctx, Pod{Namespace: "default", Name: "web-2", Node: "n8"}) // not on n7
	_, _ = pods.Create(ctx, Pod{Namespace: "default", Name: "web-3", Node: "n7"})
	_, _ = pods.Put(ctx, Pod{Namespace: "default", Name: "web-3", Node: "n8"}) // moved away
	for ev, err := range w.Events() {
		if err != nil {
			fmt.Println(err) // once, and says why the watch ended
			return
		}
		fmt.Println(ev)
		if ev.Type == engine.Deleted {
			w.Stop()
		}
	}
	// Output:
	// ADDED default/web-3@4
	// DELETED default/web-3@5
	// n7: watch stopped
}

func Example_readmeTopic() {
	ctx := context.Background()
	handled := make(chan struct{})

	orders := engine.NewTopic[Order]()
	defer orders.Close()
	_, _ = orders.Subscribe(ctx, func(o Order) {
		fmt.Println("order", o.ID, o.Total)
		close(handled)
	})
	_, _ = orders.Publish(ctx, Order{ID: 1, Total: "9.99"})
	<-handled
	// Output: order 1 9.99
}

func Example_readmeResume() {
	ctx := context.Background()
	pods := newPods()
	defer pods.Close()

	w, _ := pods.Watch(ctx, engine.WatchOptions{})
	_, _ = pods.Create(ctx, Pod{Namespace: "default", Name: "a"})
	_, _ = w.Next(ctx)
	w.Stop() // the connection breaks
	_, _ = pods.Create(ctx, Pod{Namespace: "default", Name: "b"})
	_, _ = pods.Delete(ctx, "default/a", engine.DeleteOptions{})

	w, err := pods.Watch(ctx, engine.WatchOptions{From: w.Revision()})
	if errors.Is(err, engine.ErrExpired) {
		fmt.Println("away for too long: list again, and watch from the list's revision")
		return
	}
	for missed := 2; missed > 0; {
		events, err := w.Next(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, ev := range events {
			fmt.Println(ev)
			missed--
		}
	}
	// Output:
	// ADDED default/b@3
	// DELETED default/a@4
}

func Example_readmeStalled() {
	ctx := context.Background()
	pods := newPods()
	defer pods.Close()

	stuck := make(chan struct{})
	slow, _ := pods.Handle(ctx, engine.WatchOptions{Buffer: 100}, func(engine.Event[Pod]) { <-stuck })
	healthy, _ := pods.Watch(ctx, engine.WatchOptions{})
	var last *engine.Object[Pod]
	for i := range 5000 {
		last, _ = pods.Put(ctx, Pod{Namespace: "default", Name: "web", Node: fmt.Sprint("n", i)})
	}
	for healthy.Revision() < last.Revision {
		if _, err := healthy.Next(ctx); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println("healthy:", healthy.Delivered(), "delivered, lag", healthy.Lag())
	fmt.Println("slow: lag above 4000:", slow.Lag() > 4000, "ended:", slow.Err())
	close(stuck)
	// Output:
	// healthy: 5000 delivered, lag 0
	// slow: lag above 4000: true ended: <nil>
}

func Example_readmeClose() {
	pods := newPods()
	w, _ := pods.Watch(context.Background(), engine.WatchOptions{Name: "audit"})
	fmt.Println("close:", pods.Close())
	fmt.Println("watch:", w.Err())
	fmt.Println("actors:", pods.Host().Actors(), "timers:", pods.Host().Timers())
	// Output:
	// close: <nil>
	// watch: audit: engine closed
	// actors: 0 timers: 0
}

func Example_readmeReads() {
	ctx := context.Background()
	pods := newPods()
	defer pods.Close()

	first, _ := pods.Create(ctx, Pod{Namespace: "default", Name: "a", Node: "n1"})
	second, _ := pods.Put(ctx, Pod{Namespace: "default", Name: "a", Node: "n2"})
	_ = pods.WaitForRevision(ctx, second.Revision) // so that Cached sees it too
	show := func(read engine.Read) {
		pod, err := pods.Get(ctx, "default/a", engine.GetOptions{Read: read})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(pod.Value.Node, pod.Revision)
	}
	show(engine.Latest())
	show(engine.NotOlderThan(second.Revision))
	show(engine.Cached())
	show(engine.Exactly(first.Revision))
	// Output:
	// n2 3
	// n2 3
	// n2 3
	// n1 2
}

func Example_readmeSlow() {
	ctx := context.Background()
	pods := newPods()
	defer pods.Close()

	_, _ = pods.Watch(ctx, engine.WatchOptions{Name: "billing"}) // which is never read
	_, _ = pods.Create(ctx, Pod{Namespace: "default", Name: "web-1"})
	_ = pods.WaitForRevision(ctx, 2)
	for _, w := range pods.Watches() {
		fmt.Println(w.Name, "selects", w.Selector, "and is behind:", w.Behind > 0) // billing selects everything and is behind: true
	}
	// Output:
	// billing selects everything and is behind: true
}

func Example_readmePanic() {
	ctx := context.Background()
	pods := newPods()
	defer pods.Close()

	clumsy, _ := pods.Handle(ctx, engine.WatchOptions{Name: "clumsy"}, func(engine.Event[Pod]) { panic("oops") })
	healthy, _ := pods.Watch(ctx, engine.WatchOptions{})
	_, _ = pods.Create(ctx, Pod{Namespace: "default", Name: "a"})
	<-clumsy.Done()
	fmt.Println(clumsy.Err())
	_, _ = pods.Create(ctx, Pod{Namespace: "default", Name: "b"})
	for healthy.Delivered() < 2 {
		_, _ = healthy.Next(ctx)
	}
	fmt.Println("healthy:", healthy.Err())
	// Output:
	// clumsy: watch handler panicked on "default/a" at revision 2: oops
	// healthy: <nil>
}

// searchIndex is what a handler keeps up to date.
type searchIndex map[string]Pod

func (s searchIndex) Apply(_ context.Context, ev engine.Event[Pod]) error {
	name := ev.Object.Value.Name
	if ev.Type == engine.Deleted {
		delete(s, name)
		return nil
	}
	fmt.Println("indexed", name)
	s[name] = ev.Object.Value
	return nil
}

func Example_readmeProcess() {
	ctx := context.Background()
	pods := newPods()
	defer pods.Close()
	index := make(searchIndex)

	w, err := pods.Process(ctx, engine.WatchOptions{InitialState: true}, engine.ErrorPolicy{Attempts: 8, Backoff: time.Second},
		func(ctx context.Context, ev engine.Event[Pod]) error { return index.Apply(ctx, ev) })
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _ = pods.Create(ctx, Pod{Namespace: "default", Name: "web-1"})
	fmt.Println("drained:", pods.Drain(ctx), "ended:", errors.Is(w.Err(), engine.ErrEngineClosed))
	// Output:
	// indexed web-1
	// drained: <nil> ended: true
}

func Example_readmeInformer() {
	ctx := context.Background()
	pods := newPods()
	defer pods.Close()
	fail := func(err error) {
		if err != nil {
			panic(err)
		}
	}

	mirror, err := informer.New(informer.Config[Pod]{Source: pods.Source(), Host: pods.Host()})
	fail(err)
	defer mirror.Close()
	handler, err := mirror.AddEventHandler(informer.HandlerFuncs[Pod]{
		AddFunc: func(o *informer.Object[Pod], _ bool) { fmt.Println("added", o.Key) },
	}, informer.HandlerOptions{})
	fail(err)
	err = informer.WaitFor(ctx, mirror, handler)
	fail(err)
	pod, err := pods.Create(ctx, Pod{Namespace: "default", Name: "web-1", Node: "n7"})
	fail(err)
	err = mirror.WaitForRevision(ctx, pod.Revision)
	fail(err)
	fail(handler.Remove(ctx, informer.Drain))
	fmt.Println(mirror.Get("default/web-1").Value.Node)
	// Output:
	// added default/web-1
	// n7
}
