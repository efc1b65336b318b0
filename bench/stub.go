package bench

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// stub is a backend that keeps nothing but the newest object of each key, in a map: it
// gives an object the next revision and passes it on to its one watch, the Reflector's. So
// it costs as little as the stub under the Kubernetes watch cache and client-go.
type stub struct {
	mu       sync.Mutex
	revision store.Revision
	objects  map[string]*store.Object
	// sorted are the objects in key order, as of revision sortedAt.
	sorted   []*store.Object
	sortedAt store.Revision
	// ahead are the events that the watch has not read; through is the revision up to
	// which it has.
	ahead   []store.Event
	through store.Revision
	// notify is due for the next event if awaited.
	notify  func()
	awaited bool
}

var _ backend.Backend = (*stub)(nil)

func newStub() *stub { return &stub{revision: 1, through: 1, objects: make(map[string]*store.Object)} }

// put gives o its revision, passes it on, and returns the revision.
func (s *stub) put(o *store.Object) store.Revision {
	s.mu.Lock()
	s.revision++
	o.Revision, o.Created, o.Written = s.revision, s.revision, time.Now()
	ev := store.Event{Type: store.Added, Revision: o.Revision, Object: o}
	if prev := s.objects[o.Key]; prev != nil {
		ev.Type, o.Created = store.Modified, prev.Created
	}
	s.objects[o.Key] = o
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

// newest returns the object under key, nil if there is none.
func (s *stub) newest(key string) *store.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[key]
}

// List sorts the objects for the first page.
func (s *stub) List(_ context.Context, opts backend.ListOptions) (*backend.List, error) {
	scan, err := opts.Scan()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sortedAt != s.revision {
		s.sorted = slices.SortedFunc(maps.Values(s.objects), func(a, b *store.Object) int { return cmp.Compare(a.Key, b.Key) })
		s.sortedAt = s.revision
	}
	from, _ := slices.BinarySearchFunc(s.sorted, scan.After+"\x00", func(o *store.Object, key string) int { return cmp.Compare(o.Key, key) })
	return backend.Page(scan, s.revision, slices.Values(s.sorted[from:])), nil
}

// Watch returns the only watch.
func (s *stub) Watch(_ context.Context, opts backend.WatchOptions) (backend.Watcher, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead = slices.DeleteFunc(s.ahead, func(ev store.Event) bool { return ev.Revision <= opts.From })
	s.notify, s.through = opts.Notify, opts.From
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
	s.ahead = s.ahead[n:]
	if n > 0 {
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

// feed writes objects to a stub, past any engine.
type feed struct {
	stub   *stub
	schema store.Schema
}

func newFeed(cfg engine.Config[Object]) feed { return feed{newStub(), cfg.Schema()} }

func (f feed) Write(_ context.Context, o Object) (uint64, error) {
	made := store.Header(&engine.Object[Object]{Value: o})
	made.Key = f.schema.Key(made)
	if prev := f.stub.newest(made.Key); prev != nil { // as backend.Storage does
		made.Labels, made.Fields = prev.Labels, prev.Fields
	}
	f.schema.Describe(made)
	return uint64(f.stub.put(made)), nil
}

// fedStore is an engine over a stub.
type fedStore struct {
	engineStore
	feed feed
}

func openFed(ctx context.Context) (Store, error) {
	cfg := config()
	f := newFeed(cfg)
	cfg.Backend = f.stub
	e, err := engine.New(cfg)
	if err != nil {
		return nil, err
	}
	return fedStore{engineStore{e}, f}, e.WaitReady(ctx)
}

func (s fedStore) Write(ctx context.Context, o Object) (uint64, error) { return s.feed.Write(ctx, o) }
