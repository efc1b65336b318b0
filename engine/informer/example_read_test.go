package informer_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/store/cache"
)

// must ends an example whose setting fails.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// running starts an engine with two pods on n7, and an informer that has them, with an index
// of their nodes.
func running() (*engine.Engine[Pod], *informer.SharedInformer[Pod]) {
	ctx := context.Background()
	e, err := newPods()
	must(err)
	_, err = e.Create(ctx, Pod{"default", "db", "n7", "Running"})
	must(err)
	web, err := e.Create(ctx, Pod{"default", "web", "n7", "Pending"})
	must(err)
	pods, err := informer.New(informer.Config[Pod]{
		Source: e.Source(), Host: e.Host(), Name: "pods",
		Indexers: cache.Indexers[Pod]{"node": nodeOf},
	})
	must(err)
	must(pods.WaitForRevision(ctx, web.Revision))
	return e, pods
}

func ExampleSharedInformer_Get() {
	e, pods := running()
	defer e.Close()
	defer pods.Close()
	fmt.Println(pods.Get("default/web").Value.Phase, pods.Get("default/missing") == nil)
	// Output: Pending true
}

func ExampleSharedInformer_List() {
	e, pods := running()
	defer e.Close()
	defer pods.Close()
	for _, o := range pods.List(labels.SelectorFromSet(labels.Set{"phase": "Running"})) {
		fmt.Println(o.Key)
	}
	// Output: default/db
}

// The copy has a write once it has reached the write's revision.
func ExampleSharedInformer_WaitForRevision() {
	ctx := context.Background()
	e, pods := running()
	defer e.Close()
	defer pods.Close()
	dns, err := e.Create(ctx, Pod{"kube-system", "dns", "n8", "Running"})
	must(err)
	must(pods.WaitForRevision(ctx, dns.Revision))
	fmt.Println(pods.Get("kube-system/dns").Value.Node, pods.Revision() >= dns.Revision)
	// Output: n8 true
}

// A snapshot stays as it is, so that several reads of it fit together.
func ExampleSharedInformer_Snapshot() {
	ctx := context.Background()
	e, pods := running()
	defer e.Close()
	defer pods.Close()
	before := pods.Snapshot()
	gone, err := e.Delete(ctx, "default/web", engine.DeleteOptions{})
	must(err)
	must(pods.WaitForRevision(ctx, gone.Revision))
	fmt.Println(before.Len(), before.Get("default/web") != nil, pods.Snapshot().Len())
	// Output: 2 true 1
}

func ExampleSnapshot_ByIndex() {
	e, pods := running()
	defer e.Close()
	defer pods.Close()
	s := pods.Snapshot()
	nodes, err := s.IndexValues("node")
	must(err)
	for _, node := range nodes {
		keys, err := s.IndexKeys("node", node)
		must(err)
		fmt.Println(node, strings.Join(keys, " "))
	}
	_, err = s.ByIndex("zone", "z1")
	fmt.Println(errors.Is(err, informer.ErrUnknownIndex))
	// Output:
	// n7 default/db default/web
	// true
}

// The objects under a path are found without a look at the others.
func ExampleSnapshot_Under() {
	e, pods := running()
	defer e.Close()
	defer pods.Close()
	for o := range pods.Snapshot().Under("default") {
		fmt.Println(o.Key)
	}
	// Output:
	// default/db
	// default/web
}

// A lister reads one prefix, always of the newest state.
func ExampleSharedInformer_Lister() {
	ctx := context.Background()
	e, pods := running()
	defer e.Close()
	defer pods.Close()
	system := pods.Lister("kube-system")
	fmt.Println(len(system.List(nil)), system.Get("default/web") == nil)
	dns, err := e.Create(ctx, Pod{"kube-system", "dns", "n8", "Running"})
	must(err)
	must(pods.WaitForRevision(ctx, dns.Revision))
	for o := range system.All() {
		fmt.Println(o.Key)
	}
	// Output:
	// 0 true
	// kube-system/dns
}

// Indexes may be added while the informer runs, all or none.
func ExampleSharedInformer_AddIndexers() {
	e, pods := running()
	defer e.Close()
	defer pods.Close()
	byPhase := func(p Pod) ([]string, error) { return []string{p.Phase}, nil }
	must(pods.AddIndexers(cache.Indexers[Pod]{"phase": byPhase}))
	pending, err := pods.ByIndex("phase", "Pending")
	fmt.Println(len(pending), err)
	err = pods.AddIndexers(cache.Indexers[Pod]{"node": nodeOf})
	fmt.Println(errors.Is(err, informer.ErrIndexConflict))
	// Output:
	// 1 <nil>
	// true
}

// An object for which a function of the configuration fails is put aside, with the error,
// and the others go on.
func ExampleSharedInformer_Quarantined() {
	ctx := context.Background()
	e, err := newPods()
	must(err)
	defer e.Close()
	pods, err := informer.New(informer.Config[Pod]{
		Source: e.Source(), Host: e.Host(), ItemErrors: informer.Quarantine,
		Transform: func(p Pod) (Pod, error) {
			if p.Node == "" {
				return p, errors.New("no node")
			}
			p.Phase = "" // which this program does not need
			return p, nil
		},
	})
	must(err)
	defer pods.Close()
	_, err = e.Create(ctx, Pod{"default", "lost", "", "Pending"})
	must(err)
	web, err := e.Create(ctx, Pod{"default", "web", "n7", "Running"})
	must(err)
	must(pods.WaitForRevision(ctx, web.Revision))
	for _, q := range pods.Quarantined() {
		fmt.Println(q.Object.Key, q.Err.Func, q.Err.Err)
	}
	fmt.Printf("%q\n", pods.Get("default/web").Value.Phase)
	// Output:
	// default/lost Transform no node
	// ""
}

func ExampleSharedInformer_Stats() {
	e, pods := running()
	defer e.Close()
	defer pods.Close()
	s := pods.Stats()
	fmt.Println(s.Objects, "objects,", s.Handlers, "handlers,", s.Source.Lists, "list")
	// Output: 2 objects, 0 handlers, 1 list
}

func ExampleSharedInformer_Handlers() {
	e, pods := running()
	defer e.Close()
	defer pods.Close()
	handler, err := pods.AddEventHandler(informer.HandlerFuncs[Pod]{}, informer.HandlerOptions{Name: "audit"})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = handler.WaitSynced(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, h := range pods.Handlers() { // the slowest first
		fmt.Println(h.Name, h.Policy, h.Lag)
	}
	// Output: audit merge 0
}

// The copy can be read after Close.
func ExampleSharedInformer_Close() {
	e, pods := running()
	defer e.Close()
	fmt.Println(pods.Close(), errors.Is(pods.Err(), informer.ErrClosed), len(pods.List(nil)))
	// Output: <nil> true 2
}

// An informer is ready for reads once it has its first list.
func ExampleSharedInformer_WaitSynced() {
	e, err := newPods()
	must(err)
	pods, err := informer.New(informer.Config[Pod]{Source: e.Source(), Host: e.Host()})
	must(err)
	fmt.Println(pods.WaitSynced(context.Background()), pods.HasSynced())
	fmt.Println(pods.Close(), e.Close())
	// Output:
	// <nil> true
	// <nil> <nil>
}

func ExampleSharedInformer_SyncedSignal() {
	e, err := newPods()
	must(err)
	pods, err := informer.New(informer.Config[Pod]{Source: e.Source(), Host: e.Host()})
	must(err)
	interrupted := make(chan os.Signal)
	select {
	case <-pods.SyncedSignal():
		fmt.Println("synced:", pods.HasSynced())
	case <-interrupted:
	}
	fmt.Println(pods.Close(), e.Close())
	// Output:
	// synced: true
	// <nil> <nil>
}

// A deletion that a program has made itself is seen at once, too.
func ExampleOverlay_Removed() {
	ctx := context.Background()
	e, pods := running()
	defer e.Close()
	defer pods.Close()
	overlay := pods.Overlay(0)
	gone, err := e.Delete(ctx, "default/web", engine.DeleteOptions{})
	must(err)
	overlay.Removed(gone.Key, gone.Revision)
	fmt.Println(overlay.Get("default/web") == nil)
	onN7, err := overlay.ByIndex("node", "n7")
	fmt.Println(len(onN7), err)
	// Output:
	// true
	// 1 <nil>
}

// The last lease that is closed ends the informer.
func ExampleLease_Close() {
	e, err := newPods()
	must(err)
	defer e.Close()
	factory := &informer.Factory{Host: e.Host()}
	configure := func() informer.Config[Pod] { return informer.Config[Pod]{Source: e.Source()} }
	first, err := informer.Acquire(factory, "pods", configure)
	must(err)
	second, err := informer.Acquire(factory, "pods", configure)
	must(err)
	fmt.Println(first.Close(), second.Err(), factory.Len())
	fmt.Println(second.Close(), errors.Is(second.Err(), informer.ErrClosed), factory.Len())
	// Output:
	// <nil> <nil> 1
	// <nil> true 0
}
