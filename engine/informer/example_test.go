package informer_test

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/store/cache"
)

// Pod is the object of the examples.
type Pod struct{ Namespace, Name, Node, Phase string }

// newPods starts an engine that holds pods.
func newPods() (*engine.Engine[Pod], error) {
	return engine.New(engine.Config[Pod]{
		Key:         func(p Pod) string { return p.Namespace + "/" + p.Name },
		LabelValues: engine.LabelValues[Pod]{"phase": func(p Pod) string { return p.Phase }},
	})
}

func nodeOf(p Pod) ([]string, error) { return []string{p.Node}, nil }

func ExampleNew() {
	ctx := context.Background()
	e, err := newPods()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()
	pods, err := informer.New(informer.Config[Pod]{
		Source: e.Source(), Host: e.Host(),
		Indexers: cache.Indexers[Pod]{"node": nodeOf},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pods.Close()

	handler, err := pods.AddEventHandler(informer.HandlerFuncs[Pod]{
		AddFunc:    func(o *informer.Object[Pod], _ bool) { fmt.Println("added", o.Key) },
		UpdateFunc: func(old, o *informer.Object[Pod]) { fmt.Println(o.Key, old.Value.Phase, "→", o.Value.Phase) },
		DeleteFunc: func(gone informer.Deleted[Pod]) { fmt.Println("deleted", gone.Key) },
	}, informer.HandlerOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := informer.WaitFor(ctx, pods, handler); err != nil {
		fmt.Println(err)
		return
	}

	e.Create(ctx, Pod{"default", "web", "n7", "Pending"})
	e.Put(ctx, Pod{"default", "web", "n7", "Running"})
	gone, err := e.Delete(ctx, "default/web", engine.DeleteOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := pods.WaitForRevision(ctx, gone.Revision); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(pods.List(nil)), "left; remove:", handler.Remove(ctx, informer.Drain))
	// Output:
	// added default/web
	// default/web Pending → Running
	// deleted default/web
	// 0 left; remove: <nil>
}

func ExampleSharedInformer_ByIndex() {
	ctx := context.Background()
	e, err := newPods()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()
	e.Create(ctx, Pod{"default", "db", "n7", "Running"})
	e.Create(ctx, Pod{"default", "web", "n7", "Pending"})
	e.Create(ctx, Pod{"kube-system", "dns", "n8", "Running"})

	pods, err := informer.New(informer.Config[Pod]{Source: e.Source(), Host: e.Host()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pods.Close()
	if err := errors.Join(pods.WaitSynced(ctx), pods.AddIndexers(cache.Indexers[Pod]{"node": nodeOf})); err != nil {
		fmt.Println(err)
		return
	}
	onN7, err := pods.ByIndex("node", "n7")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, o := range onN7 {
		fmt.Println("on n7:", o.Key)
	}
	running := labels.SelectorFromSet(labels.Set{"phase": "Running"})
	for _, o := range pods.Lister("default").List(running) {
		fmt.Println("running in default:", o.Key)
	}
	// Output:
	// on n7: default/db
	// on n7: default/web
	// running in default: default/db
}

func ExampleSharedInformer_Subscribe() {
	ctx := context.Background()
	e, err := newPods()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()
	web, err := e.Create(ctx, Pod{"default", "web", "n7", "Pending"})
	if err != nil {
		fmt.Println(err)
		return
	}
	pods, err := informer.New(informer.Config[Pod]{Source: e.Source(), Host: e.Host()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pods.Close()
	if err := pods.WaitForRevision(ctx, web.Revision); err != nil {
		fmt.Println(err)
		return
	}
	late, err := pods.Subscribe(func(n informer.Notification[Pod]) {
		fmt.Println(n.Type, n.Key(), "because of a", n.Cause)
	}, informer.HandlerOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(late.WaitSynced(ctx))
	// Output:
	// ADDED default/web because of a replay
	// <nil>
}

func ExampleAcquire() {
	ctx := context.Background()
	e, err := newPods()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()
	factory := &informer.Factory{Host: e.Host()}
	configure := func() informer.Config[Pod] {
		fmt.Println("started once")
		return informer.Config[Pod]{Source: e.Source()}
	}
	for range 2 {
		pods, err := informer.Acquire(factory, "pods", configure)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer pods.Close() // the last one stops the stream
		fmt.Println(pods.WaitSynced(ctx))
	}
	// Output:
	// started once
	// <nil>
	// <nil>
}

func ExampleSharedInformer_Overlay() {
	ctx := context.Background()
	e, err := newPods()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()
	pods, err := informer.New(informer.Config[Pod]{Source: e.Source(), Host: e.Host()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pods.Close()
	if _, err := e.Create(ctx, Pod{"default", "web", "n7", "Pending"}); err != nil {
		fmt.Println(err)
		return
	}
	overlay := pods.Overlay(0)
	written, err := e.Update(ctx, "default/web", func(p Pod) (Pod, error) {
		p.Phase = "Running"
		return p, nil
	}, engine.UpdateOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	overlay.Wrote(written)
	fmt.Println(overlay.Get("default/web").Value.Phase)
	// Output:
	// Running
}

func ExampleFilteringHandler() {
	ctx := context.Background()
	e, err := newPods()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()
	pods, err := informer.New(informer.Config[Pod]{Source: e.Source(), Host: e.Host()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pods.Close()
	running, err := pods.AddEventHandler(informer.FilteringHandler[Pod]{
		Filter: func(o *informer.Object[Pod]) bool { return o.Value.Phase == "Running" },
		Handler: informer.HandlerFuncs[Pod]{
			AddFunc:    func(o *informer.Object[Pod], _ bool) { fmt.Println(o.Key, "runs") },
			DeleteFunc: func(gone informer.Deleted[Pod]) { fmt.Println(gone.Key, "runs no more") },
		},
	}, informer.HandlerOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := running.WaitSynced(ctx); err != nil {
		fmt.Println(err)
		return
	}
	var last *engine.Object[Pod]
	for _, phase := range []string{"Pending", "Running", "Succeeded"} {
		if last, err = e.Put(ctx, Pod{"default", "job", "n7", phase}); err != nil {
			fmt.Println(err)
			return
		}
	}
	if err := errors.Join(pods.WaitForRevision(ctx, last.Revision), running.Remove(ctx, informer.Drain)); err != nil {
		fmt.Println(err)
	}
	// Output:
	// default/job runs
	// default/job runs no more
}
