package engine_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// newNodes returns an engine with three pods on two nodes, of which it has seen
// all.
func newNodes(ctx context.Context) *engine.Engine[Pod] {
	pods, err := engine.New(engine.Config[Pod]{
		Key:    func(p Pod) string { return p.Namespace + "/" + p.Name },
		Labels: func(p Pod) labels.Set { return p.Labels },
		Fields: engine.Fields[Pod]{"spec.nodeName": func(p Pod) string { return p.Node }},
		Index:  []string{"spec.nodeName"},

		FirstRevision: 1, // so that the examples' revisions are small
	})
	must(err)
	must(pods.WaitForRevision(ctx, 1)) // so that the window begins before the first write
	for name, node := range map[string]string{"web-1": "n1", "web-2": "n2", "web-3": "n1"} {
		o, err := pods.Create(ctx, Pod{Namespace: "default", Name: name, Node: node})
		must(err)
		must(pods.WaitForRevision(ctx, o.Revision))
	}
	return pods
}

// must ends an example whose setting fails.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// Fields say once what selectors and indexes may name. Another name is refused.
func ExampleFields() {
	ctx := context.Background()
	pods := newNodes(ctx)
	defer pods.Close()
	_, err := pods.Watch(ctx, engine.WatchOptions{Fields: "spec.nodename=n1"})
	var unknown *engine.UnknownFieldError
	if errors.As(err, &unknown) {
		fmt.Println(unknown)
	}
	// Output: unknown field "spec.nodename": did you mean "spec.nodeName"? declared are spec.nodeName
}

// A type without a map of labels has a function for each. An order without a region has no
// such label.
func ExampleLabelValues() {
	type Order struct{ ID, Region string }
	ctx := context.Background()
	orders, err := engine.New(engine.Config[Order]{
		Key:         func(o Order) string { return o.ID },
		LabelValues: engine.LabelValues[Order]{"region": func(o Order) string { return o.Region }},
	})
	must(err)
	defer orders.Close()
	for _, o := range []Order{{"1", "eu"}, {"2", "us"}, {"3", ""}, {"4", "eu"}} {
		_, err := orders.Create(ctx, o)
		must(err)
	}
	for _, selector := range []string{"region=eu", "region", "region!=eu"} {
		list, err := orders.List(ctx, engine.ListOptions{Labels: selector})
		must(err)
		fmt.Print(selector, ":")
		for _, o := range list.Items {
			fmt.Print(" ", o.Key)
		}
		fmt.Println()
	}
	// Output:
	// region=eu: 1 4
	// region: 1 2 4
	// region!=eu: 2 3
}

// History that no reader needs any more is given up before the window's limits do so.
func ExampleEngine_Compact() {
	ctx := context.Background()
	pods := newNodes(ctx)
	defer pods.Close()
	must(pods.Compact(ctx, 3))
	for _, rev := range []engine.Revision{2, 3} {
		then, err := pods.List(ctx, engine.ListOptions{Read: engine.Exactly(rev)})
		if errors.Is(err, engine.ErrExpired) {
			fmt.Println(rev, "is too old")
			continue
		}
		must(err)
		fmt.Println(rev, "had", len(then.Items))
	}
	// Output:
	// 2 is too old
	// 3 had 2
}

// Storage that is made beside the engine learns from the schema how to deal with
// the values. It outlives the engine.
func ExampleConfig_Schema() {
	ctx := context.Background()
	cfg := podConfig()
	storage, err := memory.New(cfg.Schema(), memory.Options{FirstRevision: 1})
	must(err)
	defer storage.Close()
	cfg.Backend, cfg.FirstRevision = storage, 0

	first, err := engine.New(cfg)
	must(err)
	_, _ = first.Create(ctx, Pod{Namespace: "default", Name: "web-1"})
	_ = first.Close()

	second, err := engine.New(cfg)
	must(err)
	defer second.Close()
	list, _ := second.List(ctx, engine.ListOptions{})
	fmt.Println(len(list.Items), "pod is still there")
	// Output: 1 pod is still there
}

// A list may be read in pages: all of them show the state of the first.
func ExampleEngine_List() {
	ctx := context.Background()
	pods := newNodes(ctx)
	defer pods.Close()
	opts := engine.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", "n1"), Limit: 1}
	for {
		page, err := pods.List(ctx, opts)
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, o := range page.Items {
			fmt.Println(o.Key)
		}
		if opts.Continue = page.Continue; opts.Continue == "" {
			break
		}
	}
	// Output:
	// default/web-1
	// default/web-3
}

func ExampleEngine_ByIndex() {
	ctx := context.Background()
	pods := newNodes(ctx)
	defer pods.Close()
	onNode, _ := pods.ByIndex(ctx, "spec.nodeName", "n1")
	for _, o := range onNode {
		fmt.Println(o.Key)
	}
	// Output:
	// default/web-1
	// default/web-3
}

// A read from the cache sees one's own write once the cache has reached it.
func ExampleEngine_WaitForRevision() {
	ctx := context.Background()
	pods := newPods()
	defer pods.Close()
	created, _ := pods.Create(ctx, Pod{Namespace: "default", Name: "web-1"})
	fmt.Println(pods.WaitForRevision(ctx, created.Revision))
	o, _ := pods.Get(ctx, "default/web-1", engine.GetOptions{Read: engine.Cached()})
	fmt.Println(o.Key)
	// Output:
	// <nil>
	// default/web-1
}

// A server listens once its engine can serve, however long that takes to read a file.
func ExampleEngine_WaitReady() {
	ctx := context.Background()
	pods := newPods()
	defer pods.Close()
	fmt.Println(pods.WaitReady(ctx), pods.Stats().Ready)
	// Output: <nil> true
}

func ExampleEngine_Verify() {
	ctx := context.Background()
	pods := newNodes(ctx)
	defer pods.Close()
	fmt.Println("cache and storage differ:", pods.Verify(ctx))
	// Output: cache and storage differ: <nil>
}

// Values can be sent that are not state: watches see them in order with the others,
// lists do not.
func ExampleEngine_Emit() {
	ctx := context.Background()
	pods := newPods()
	defer pods.Close()
	w, err := pods.Watch(ctx, engine.WatchOptions{From: 1})
	must(err)
	_, _ = pods.Create(ctx, Pod{Namespace: "default", Name: "web-1"})
	_, _ = pods.Emit(ctx, Pod{Namespace: "default", Name: "ping"})
	for ev := range w.Events() {
		fmt.Println(ev)
		if ev.Type == engine.Emitted {
			break
		}
	}
	list, _ := pods.List(ctx, engine.ListOptions{})
	fmt.Println(len(list.Items), "object")
	// Output:
	// ADDED default/web-1@2
	// EMITTED default/ping@3
	// 1 object
}

// Several engines share a host, with its workers.
func ExampleNewHost() {
	ctx := context.Background()
	host, err := engine.NewHost(engine.HostConfig{Workers: 2})
	must(err)
	cfg := podConfig()
	cfg.Host = host
	pods, err := engine.New(cfg)
	must(err)
	orders := engine.NewTopicWith[Order](engine.TopicOptions{Host: host})
	_, _ = pods.Create(ctx, Pod{Namespace: "default", Name: "web-1"})
	_, _ = orders.Publish(ctx, Order{ID: 1})
	fmt.Println(pods.Close(), orders.Close())
	fmt.Println("left:", host.Actors(), host.Timers(), host.Close())
	// Output:
	// <nil> <nil>
	// left: 0 0 <nil>
}

// With a virtual clock and a seeded executor nothing happens by itself: the engine
// runs while a call waits, in an order that the seed decides.
func ExampleNewSeededExecutor() {
	ctx := context.Background()
	host, err := engine.NewHost(engine.HostConfig{
		Clock:    engine.NewVirtualClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
		Executor: engine.NewSeededExecutor(42), Seed: 42,
	})
	must(err)
	defer host.Close()
	cfg := podConfig()
	cfg.Host = host
	cfg.FirstRevision = 1
	pods, err := engine.New(cfg)
	must(err)
	defer pods.Close()
	w, err := pods.Watch(ctx, engine.WatchOptions{})
	must(err)
	_, _ = pods.Create(ctx, Pod{Namespace: "default", Name: "web-1"})
	for ev, err := range w.Events() {
		if errors.Is(err, engine.ErrIdle) {
			fmt.Println("nothing more can happen")
			break
		}
		fmt.Println(ev)
	}
	// Output:
	// ADDED default/web-1@2
	// nothing more can happen
}

// A list can start at a key, itself included.
func ExampleListOptions_start() {
	ctx := context.Background()
	pods := newPods()
	defer pods.Close()
	for _, name := range []string{"db", "web-1", "web-2", "worker"} {
		_, _ = pods.Create(ctx, Pod{Namespace: "default", Name: name})
	}
	l, _ := pods.List(ctx, engine.ListOptions{Start: "default/web-2"})
	for _, o := range l.Items {
		fmt.Println(o.Key)
	}
	// Output:
	// default/web-2
	// default/worker
}
