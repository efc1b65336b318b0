package kube

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/tools/cache"

	"github.com/watchmill/watchmill/bench"
)

// Informer is client-go's SharedIndexInformer as generated informers make it,
// with the index on namespaces and no resync. It lists and watches the storage
// directly, without API server or encoding.
func Informer() bench.Contender {
	open := func(context.Context) (bench.Informer, error) {
		return &informer{store: store{memory: newMemory()}}, nil
	}
	return bench.Contender{Name: "client-go", Informer: open, FedInformer: open}
}

// informer adapts client-go's informer to bench.Informer.
type informer struct {
	store
	running sync.WaitGroup
	stop    context.CancelFunc
}

// Start gives all handlers what they get in client-go: unbounded ring buffers.
func (i *informer) Start(ctx context.Context, healthy []func(seq int64), slow func(seq int64)) error {
	shared := cache.NewSharedIndexInformer(listWatch(i.memory), &example.Pod{}, 0,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for _, handle := range append(healthy[:len(healthy):len(healthy)], slow) {
		if _, err := shared.AddEventHandler(passSeq(handle)); err != nil {
			return fmt.Errorf("add handler: %w", err)
		}
	}
	ctx, i.stop = context.WithCancel(ctx)
	i.running.Go(func() { shared.RunWithContext(ctx) })
	return nil
}

// passSeq returns a handler that passes the Seq of each pod to handle.
func passSeq(handle func(seq int64)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { handle(o.(*example.Pod).Generation) },
		UpdateFunc: func(_, o any) { handle(o.(*example.Pod).Generation) },
	}
}

func (i *informer) Close() error {
	if i.stop != nil {
		i.stop()
	}
	i.running.Wait()
	return nil
}

// listOnly is a ListWatch that, like the storage, does not support WatchList.
type listOnly struct{ *cache.ListWatch }

func (listOnly) IsWatchListSemanticsUnSupported() bool { return true }

func listWatch(m *memory) cache.ListerWatcher {
	return listOnly{&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
			list := &example.PodList{}
			return list, m.GetList(ctx, prefix, storage.ListOptions{}, list)
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			return m.Watch(ctx, prefix, storage.ListOptions{ResourceVersion: opts.ResourceVersion})
		},
	}}
}
