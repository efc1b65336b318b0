package load

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/scenario"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// storage is where the engine's objects live: memory, with faults, that keeps a
// ledger of what was written and stamps when.
//
//	engine ──▶ strikes: fail, delay, stick ──▶ stamp ──▶ memory ──▶ ledger
type storage struct {
	*memory.Backend[item]
	*strikes
	ledger *ledger
	watch  *stopwatch
	traits backend.Traits

	mu      sync.Mutex // guards what follows
	running []*storageWatch
	// through is what the engine has been given up to.
	through store.Revision
}

var (
	_ backend.Backend[item] = (*storage)(nil)
	_ backend.Emitter[item] = (*storage)(nil)
)

// schema says what items are.
func schema() store.Schema[item] {
	return store.Schema[item]{
		Key:    func(i item) string { return i.key },
		Labels: func(i item) labels.Set { return i.attrs.labels },
		Fields: func(i item) fields.Set { return i.attrs.fields },
		Size:   func(i item) int { return len(i.payload) },
		Equal:  func(a, b item) bool { return false },
	}
}

func newStorage(p *scenario.Plan, clock *jumpClock, watch *stopwatch) (*storage, error) {
	m, err := memory.New(schema(), memory.Options{Clock: clock})
	if err != nil {
		return nil, err
	}
	s := &storage{Backend: m, strikes: newStrikes(), ledger: &ledger{}, watch: watch, traits: m.Traits()}
	for _, f := range p.Faults {
		// Calls that may hang must not be made on the engine's pool.
		s.traits.Blocks = s.traits.Blocks || f.Kind == scenario.FaultStick || f.Kind == scenario.FaultDelay
	}
	return s, nil
}

func (s *storage) Traits() backend.Traits { return s.traits }

func (s *storage) Get(ctx context.Context, key string) (*store.Object[item], error) {
	if err := s.meet(ctx, scenario.OnGet); err != nil {
		return nil, err
	}
	return s.Backend.Get(ctx, key)
}

func (s *storage) List(ctx context.Context, opts backend.ListOptions) (*backend.List[item], error) {
	if err := s.meet(ctx, scenario.OnList); err != nil {
		return nil, err
	}
	return s.Backend.List(ctx, opts)
}

func (s *storage) Put(ctx context.Context, key string, value item, expect store.Revision, opts backend.PutOptions) (*store.Object[item], error) {
	if err := s.meet(ctx, scenario.OnPut); err != nil {
		return nil, err
	}
	value.stored = s.watch.now()
	o, err := s.Backend.Put(ctx, key, value, expect, opts)
	if err == nil {
		s.ledger.note(entry{revision: o.Revision, key: key, attrs: value.attrs, stored: value.stored})
	}
	return o, err
}

func (s *storage) Remove(ctx context.Context, key string, expect store.Revision) (*store.Object[item], error) {
	if err := s.meet(ctx, scenario.OnRemove); err != nil {
		return nil, err
	}
	stored := s.watch.now()
	o, err := s.Backend.Remove(ctx, key, expect)
	if err == nil {
		s.ledger.note(entry{revision: o.Revision, key: key, stored: stored})
	}
	return o, err
}

func (s *storage) Emit(ctx context.Context, key string, value item) (*store.Object[item], error) {
	if err := s.meet(ctx, scenario.OnEmit); err != nil {
		return nil, err
	}
	value.stored = s.watch.now()
	o, err := s.Backend.Emit(ctx, key, value)
	if err == nil {
		s.ledger.note(entry{revision: o.Revision, key: key, attrs: value.attrs, emitted: true, stored: value.stored})
	}
	return o, err
}

// forget makes the storage forget its history.
func (s *storage) forget(ctx context.Context) error {
	rev, err := s.Revision(ctx)
	if err != nil {
		return err
	}
	return s.Compact(ctx, rev)
}

// tooOld is what a watch ends with whose place is no longer kept.
func (s *storage) tooOld() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &store.ExpiredError{Requested: s.through, Oldest: s.through + 1}
}

// config returns the configuration of the engine under load.
func config(p *scenario.Plan, s *storage, host *engine.Host, onError func(error)) engine.Config[item] {
	schema := schema()
	e := p.Engine
	cfg := engine.Config[item]{
		Name: "load", Key: schema.Key, Labels: schema.Labels, Fields: schema.Fields, Size: schema.Size, Equal: schema.Equal,
		Index:  p.Objects.Index,
		Window: engine.Window{MaxEvents: e.Window, MinAge: e.WindowAge},
		Host:   host, Backend: s, BookmarkPeriod: e.Bookmarks, OnError: onError,
	}
	cfg.Backoff.Initial, cfg.Backoff.Max = e.Backoff, e.BackoffMax
	if e.Backoff > 0 {
		cfg.Backoff.HealthyAfter = time.Second
	}
	return cfg
}
