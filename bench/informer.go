package bench

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/store"
)

// Synced is the metric of the time until all healthy handlers have the initial
// state.
const Synced = "synced"

// slowness is how long the slow handler sleeps for each notification. When the run is
// over it no longer sleeps, so that closing does not wait for it.
const slowness = time.Millisecond

// informers is W14.
func informers() []Workload {
	return []Workload{{
		ID: "W14", Text: "informer: 100,000 objects, 100,000 updates as fast as they go, 5 handlers of which one takes 1 ms",
		Full:  Params{Watchers: 4, Objects: 100_000, Events: 100_000},
		Small: Params{Watchers: 4, Objects: 100, Events: 500},
		Goals: []Goal{atLeast(Deliveries, 4), mustBeZero(Lost)},
		Run:   inform, Floor: callFloor, Able: onInformer,
	}}
}

func inform(ctx context.Context, c Contender, p Params) (Result, error) {
	return run(ctx, c, c.Informer, func(ctx context.Context, s Informer) (Result, error) {
		object := objects(p.Objects)
		for i := range p.Objects {
			if _, err := s.Write(ctx, object(i)); err != nil {
				return nil, err
			}
		}
		return informOn(ctx, s, p, object)
	})
}

// informOn starts s, waits until the healthy handlers have synced, and then writes
// until they have every change.
func informOn(ctx context.Context, s Informer, p Params, object func(i int) Object) (Result, error) {
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
	took, err := changes.run(ctx, func(ctx context.Context, o Object) error {
		_, err := s.Write(ctx, o)
		return err
	})
	if err != nil {
		return nil, err
	}
	return append(changes.result(took), micros(Synced, synced)), nil
}

// engineInformer is an informer over the backend of an engine whose cache is off,
// so that only the informer caches it.
type engineInformer struct {
	engineStore
	informer *informer.SharedInformer[Object]
}

func openInformer(context.Context) (Informer, error) {
	cfg := config()
	cfg.Index, cfg.NoCache = nil, true
	// client-go's informers have no fields.
	cfg.Fields = nil
	e, err := engine.New(cfg)
	return &engineInformer{engineStore: engineStore{e}}, err
}

// Start indexes namespaces, as generated informers do. The healthy handlers have
// buffers large enough to miss nothing, since client-go's are unbounded. The slow
// handler has the default buffer and policy.
func (s *engineInformer) Start(_ context.Context, healthy []func(seq int64), slow func(seq int64)) error {
	var err error
	byNamespace := store.Indexers[Object]{"namespace": func(Object) ([]string, error) { return []string{Namespace}, nil }}
	cfg := informer.Config[Object]{Source: engine.SourceOf[Object](s.Backend()), Host: s.Host(), Indexers: byNamespace}
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

func (s *engineInformer) add(handle func(seq int64), opts informer.HandlerOptions) error {
	_, err := s.informer.Subscribe(func(n informer.Notification[Object]) {
		if n.Type != store.Deleted {
			handle(n.Object.Value.Seq)
		}
	}, opts)
	return err
}

func (s *engineInformer) Close() error {
	if s.informer != nil {
		if err := s.informer.Close(); err != nil {
			return err
		}
	}
	return s.engineStore.Close()
}
