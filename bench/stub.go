package bench

import (
	"context"
	"sync"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// stub is a backend that stores nothing but which keys there are: it gives an object the
// next revision and passes it on to its one watch, the Reflector's. So it costs as little
// as the stub under the Kubernetes watch cache.
type stub struct {
	mu       sync.Mutex
	revision store.Revision
	keys     map[string]struct{}
	// ahead are the events that the watch has not read; through is the revision up to
	// which it has.
	ahead   []store.Event
	through store.Revision
	// notify is due for the next event if awaited.
	notify  func()
	awaited bool
}

var _ backend.Backend = (*stub)(nil)

func newStub() *stub { return &stub{revision: 1, through: 1, keys: make(map[string]struct{})} }

// put passes o on, which is complete but for its revision, and returns that.
func (s *stub) put(o *store.Object) store.Revision {
	s.mu.Lock()
	s.revision++
	o.Revision, o.Created, o.Written = s.revision, s.revision, time.Now()
	ev := store.Event{Type: store.Modified, Revision: o.Revision, Object: o}
	if _, known := s.keys[o.Key]; !known {
		ev.Type, s.keys[o.Key] = store.Added, struct{}{}
	}
	s.ahead = append(s.ahead, ev)
	notify := s.notify
	if !s.awaited {
		notify = nil
	}
	s.awaited = false
	s.mu.Unlock()
	if notify != nil {
		notify()
	}
	return ev.Revision
}

// List returns no objects: the engine lists before there are any.
func (s *stub) List(context.Context, backend.ListOptions) (*backend.List, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &backend.List{Revision: s.revision}, nil
}

// Watch returns the only watch.
func (s *stub) Watch(_ context.Context, opts backend.WatchOptions) (backend.Watcher, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notify = opts.Notify
	return stubWatch{s}, nil
}

func (s *stub) Revision(context.Context) (store.Revision, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revision, nil
}

func (*stub) Traits() backend.Traits { return backend.Traits{Contiguous: true} }

func (*stub) Get(context.Context, string) (*store.Object, error) { return nil, store.ErrUnsupported }

func (*stub) Put(context.Context, *store.Object, *store.Object, backend.PutOptions) (*store.Object, error) {
	return nil, store.ErrUnsupported
}

func (*stub) Remove(context.Context, *store.Object) (*store.Object, error) {
	return nil, store.ErrUnsupported
}

func (*stub) Compact(context.Context, store.Revision) error     { return nil }
func (*stub) Compacted(context.Context) (store.Revision, error) { return 0, nil }
func (*stub) Close() error                                      { return nil }

// stubWatch is a stub as its watch.
type stubWatch struct{ stub *stub }

func (w stubWatch) Next(limit int) (backend.Batch, error) {
	s := w.stub
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(max(1, limit), len(s.ahead))
	batch := backend.Batch{After: s.through, Events: s.ahead[:n:n]}
	if s.ahead = s.ahead[n:]; n > 0 {
		s.through = batch.Events[n-1].Revision
	}
	batch.Through, s.awaited = s.through, n == 0
	return batch, nil
}

func (w stubWatch) Close() {
	w.stub.mu.Lock()
	defer w.stub.mu.Unlock()
	w.stub.awaited = false
}

// fedStore is an engine whose objects come from a stub, past its own writes.
type fedStore struct {
	engineStore
	stub   *stub
	schema store.Schema
}

func openFed(ctx context.Context) (Store, error) {
	cfg := config()
	s := fedStore{stub: newStub(), schema: cfg.Schema()}
	cfg.Backend = s.stub
	e, err := engine.New(cfg)
	if err != nil {
		return nil, err
	}
	s.engineStore = engineStore{e}
	return s, e.WaitFor(ctx, 0)
}

func (s fedStore) Write(_ context.Context, o Object) (uint64, error) {
	made := store.Header(&engine.Object[Object]{Value: o})
	made.Key = s.schema.Key(made)
	s.schema.Describe(made)
	return uint64(s.stub.put(made)), nil
}
