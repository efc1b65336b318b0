package bench

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/cache"
)

// Synced is the metric of the time until all healthy handlers have the initial
// state.
const Synced = "synced"

// slowness is how long the slow handler sleeps for each notification. When the run is
// over it no longer sleeps, so that closing does not wait for it.
const slowness = time.Millisecond

// informers is W14.
func informers() []Workload {
	work := func(id, text string, open opening[Informer]) Workload {
		return Workload{
			ID: id, Text: text,
			Full:  Params{Watchers: 4, Objects: 100_000, Events: 100_000},
			Small: Params{Watchers: 4, Objects: 100, Events: 500},
			Goals: []Goal{atLeast(Deliveries, 4), mustBeZero(Lost)},
			Run:   on(open, inform), Floor: callFloor, Able: func(c Contender) bool { return open(c) != nil },
		}
	}
	return []Workload{
		work("W14", "informer: 100,000 objects, 100,000 updates as fast as they go, 5 handlers of which one takes 1 ms", informerOverStorage),
		work("W14/stub", "as W14, where both informers are fed by a stub instead of storage", informerOverStub),
	}
}

func informerOverStorage(c Contender) func(context.Context) (Informer, error) { return c.Informer }
func informerOverStub(c Contender) func(context.Context) (Informer, error)    { return c.FedInformer }

// inform fills the storage and starts s, waits until the healthy handlers have synced, and then
// writes until they have every change.
func inform(ctx context.Context, s Informer, p Params) (Result, error) {
	object := objects(p.Objects)
	for i := range p.Objects {
		if _, err := s.Write(ctx, object(i)); err != nil {
			return nil, err
		}
	}
	present := newCrowd(p.Watchers, 0, newWriter(Params{Events: p.Objects}, object))
	changes := newCrowd(p.Watchers, 1, newWriter(p, object))
	handlers := present.callees()
	for i, change := range changes.callees() {
		initial := handlers[i]
		handlers[i] = func(seq int64) {
			if seq == Unmeasured {
				initial(seq)
			} else {
				change(seq)
			}
		}
	}
	var over atomic.Bool
	defer over.Store(true)
	begin := time.Now()
	if err := s.Start(ctx, handlers, func(int64) {
		if !over.Load() {
			time.Sleep(slowness)
		}
	}); err != nil {
		return nil, err
	}
	if err := present.await(ctx); err != nil {
		return nil, err
	}
	synced := time.Since(begin)
	took, err := changes.run(ctx, writerTo(s))
	if err == nil {
		err = present.repeated()
	}
	if err != nil {
		return nil, err
	}
	return append(changes.result(took), micros(Synced, synced)), nil
}

// engineInformer is an informer over the backend of an engine whose cache is off,
// so that only the informer caches it.
type engineInformer struct {
	engineStore
	informing
}

// configWithoutFields is the configuration of informers' objects: client-go's have no fields.
func configWithoutFields() engine.Config[Object] {
	cfg := config()
	cfg.Index, cfg.Fields = nil, nil
	return cfg
}

func openInformer(context.Context) (Informer, error) {
	cfg := configWithoutFields()
	cfg.NoCache = true
	e, err := engine.New(cfg)
	return &engineInformer{engineStore: engineStore{e}}, err
}

func (s *engineInformer) Start(_ context.Context, healthy []func(seq int64), slow func(seq int64)) error {
	return s.start(s.Backend(), s.Host(), healthy, slow)
}

func (s *engineInformer) Close() error {
	if err := s.informing.Close(); err != nil {
		return err
	}
	return s.engineStore.Close()
}

// fedInformer is an informer over a stub.
type fedInformer struct {
	feed
	informing
}

func openFedInformer(context.Context) (Informer, error) {
	return &fedInformer{feed: newFeed(configWithoutFields())}, nil
}

func (s *fedInformer) Start(_ context.Context, healthy []func(seq int64), slow func(seq int64)) error {
	return s.start(s.stub, nil, healthy, slow)
}

// informing is an informer, once it was started.
type informing struct {
	informer *informer.SharedInformer[Object]
}

// start indexes namespaces, as generated informers do. The healthy handlers have
// buffers large enough to miss nothing, since client-go's are unbounded. The slow
// handler has the default buffer and policy.
func (s *informing) start(from backend.ListerWatcher, on *engine.Host, healthy []func(seq int64), slow func(seq int64)) error {
	var err error
	byNamespace := cache.Indexers[Object]{"namespace": func(Object) ([]string, error) { return []string{Namespace}, nil }}
	cfg := informer.Config[Object]{Source: engine.SourceOf[Object](from), Host: on, Indexers: byNamespace}
	if s.informer, err = informer.New(cfg); err != nil {
		return err
	}
	for _, handle := range healthy {
		if err := s.add(handle, informer.HandlerOptions{Buffer: 1 << 30}); err != nil {
			return err
		}
	}
	return s.add(slow, informer.HandlerOptions{})
}

func (s *informing) add(handle func(seq int64), opts informer.HandlerOptions) error {
	_, err := s.informer.Subscribe(func(n informer.Notification[Object]) {
		if n.Type != store.Deleted {
			handle(n.Object.Value.Seq)
		}
	}, opts)
	return err
}

func (s *informing) Close() error {
	if s.informer == nil {
		return nil
	}
	return s.informer.Close()
}
