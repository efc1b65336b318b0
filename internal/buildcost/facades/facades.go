// Package facades mentions each generic type and each backend that users may, once, so that a
// test can see what is compiled with a user's package. It is compiled, and never called.
package facades

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/watchmill/watchmill/controller"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/engine/objectcache"
	"github.com/watchmill/watchmill/inspect"
	"github.com/watchmill/watchmill/queue"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/remote"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt"
	"github.com/watchmill/watchmill/store/backend/faulty"
	"github.com/watchmill/watchmill/store/backend/memory"
	"github.com/watchmill/watchmill/store/cache"
)

// Pod is an object of a user's.
type Pod struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	Node string
}

// DeepCopyObject makes Pod a type that can be served.
func (p *Pod) DeepCopyObject() runtime.Object {
	c := *p
	return &c
}

// Engines mentions the engine, its host and what follows it.
func Engines(ctx context.Context, cfg engine.Config[Pod]) {
	host, _ := engine.NewHost(engine.HostConfig{})
	_ = inspect.Handler(host)
	_, _ = host.Timers(), host.Engines()
	pods, _ := engine.New(cfg)
	for range engine.Follow(ctx, pods, engine.WatchOptions{}) {
	}
	_, _ = engine.Resume(ctx, pods, engine.WatchOptions{}, nil, nil)
	_ = engine.NewTopic[Pod]()
}

// Backends mentions storage.
func Backends(cfg engine.Config[Pod]) []backend.Backend {
	inMemory, _ := memory.New(cfg.Schema(), memory.Options{})
	file, _ := bolt.Open("", bolt.Options{})
	inFile, _ := bolt.New(file, "", bolt.Config{})
	served, _ := remote.New(nil, remote.Config{})
	return []backend.Backend{inMemory, inFile, served, faulty.New(inMemory, faulty.Options{})}
}

// Clients mentions what keeps a copy of objects, and what acts on them.
func Clients() {
	pods, _ := informer.New(informer.Config[Pod]{})
	_ = pods.Snapshot()
	_, _ = informer.Acquire(nil, "", func() informer.Config[Pod] { return informer.Config[Pod]{} })
	cached, _ := objectcache.New(objectcache.Config[Pod]{})
	_ = objectcache.NewOwners[string](cached)
	_, _ = controller.New(controller.Config[Pod]{})
}

// Queues mentions queues and stores.
func Queues() {
	_, _ = queue.NewFIFO[Pod](nil)
	_, _ = queue.NewDeltaFIFO(queue.DeltaFIFOConfig[Pod]{})
	_, _ = queue.NewRealFIFO(queue.RealFIFOConfig[Pod]{})
	_, _ = queue.NewHeap(queue.HeapConfig[Pod]{})
	_, _ = queue.NewWorkQueue(queue.WorkQueueConfig[string]{})
	_, _ = cache.NewIndexer(cache.StoreConfig[Pod]{}, nil)
	_, _ = cache.NewExpirationCache(cache.ExpirationConfig[Pod]{})
}

// Servers mentions what serves objects.
func Servers() {
	_, _ = registry.New(registry.Config[Pod]{})
	_, _ = registry.NewVirtual(registry.VirtualConfig[Pod]{})
	_, _ = serve.New(serve.Config{})
}

// Tests mentions what users' tests have.
func Tests(t testing.TB, cfg engine.Config[Pod]) {
	pods := enginetest.New(t, cfg)
	enginetest.ExpectNothing(t, pods.Watch(engine.WatchOptions{}))
	_ = enginetest.NewSource(cfg)
}
