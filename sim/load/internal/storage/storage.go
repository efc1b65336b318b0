package storage

import (
	"context"
	"sync"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/sim/load/internal/audit"
	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/scenario"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// Storage is a backend with faults. It keeps to the contract of
// [backend.Backend], but for what they do.
type Storage struct {
	*memory.Backend
	*strikes
	ledger *audit.Ledger
	now    func() int64
	traits backend.Traits
	writes chan audit.Entry

	mu      sync.Mutex // guards what follows
	running []*watch
	// through is what the engine has been given up to.
	through store.Revision
}

var (
	_ backend.Backend = (*Storage)(nil)
	_ backend.Emitter = (*Storage)(nil)
)

// New makes an empty storage for a plan. What is written gets its times from now,
// in nanoseconds since the run's epoch, and is noted in the ledger; the clock is
// that of the backend.
func New(p *scenario.Plan, clock actors.Clock, now func() int64, ledger *audit.Ledger) (*Storage, error) {
	m, err := memory.New(content.Config(p).Schema(), memory.Options{Clock: clock})
	if err != nil {
		return nil, err
	}
	s := &Storage{Backend: m, strikes: newStrikes(), ledger: ledger, now: now, traits: m.Traits(), writes: make(chan audit.Entry)}
	for _, f := range p.Faults {
		// Calls that may hang must not be made on the engine's pool.
		s.traits.Blocks = s.traits.Blocks || f.Kind == scenario.FaultStick || f.Kind == scenario.FaultDelay
	}
	return s, nil
}

// Traits are those of memory, unless calls may hang.
func (s *Storage) Traits() backend.Traits { return s.traits }

// Writes is where a write is told of as soon as it is stored, if somebody receives
// at that moment: writes do not wait, so it is a sample of them.
func (s *Storage) Writes() <-chan audit.Entry { return s.writes }

// note puts a write down, and tells whoever waits for one.
func (s *Storage) note(e audit.Entry) {
	s.ledger.Note(e)
	select {
	case s.writes <- e:
	default:
	}
}

// Get reads one item.
func (s *Storage) Get(ctx context.Context, key string) (*store.Object, error) {
	if err := s.meet(ctx, scenario.OnGet); err != nil {
		return nil, err
	}
	return s.Backend.Get(ctx, key)
}

// List reads several.
func (s *Storage) List(ctx context.Context, opts backend.ListOptions) (*backend.List, error) {
	if err := s.meet(ctx, scenario.OnList); err != nil {
		return nil, err
	}
	return s.Backend.List(ctx, opts)
}

// Put writes one, and notes it.
func (s *Storage) Put(ctx context.Context, draft, prev *store.Object, opts backend.PutOptions) (*store.Object, error) {
	if err := s.meet(ctx, scenario.OnPut); err != nil {
		return nil, err
	}
	item := content.Of(draft)
	item.Stored = s.now()
	o, err := s.Backend.Put(ctx, draft, prev, opts)
	if err == nil {
		s.note(audit.Entry{Revision: o.Revision, Key: o.Key, Attrs: item.Attrs, Stored: item.Stored})
	}
	return o, err
}

// Remove deletes one, and notes it.
func (s *Storage) Remove(ctx context.Context, prev *store.Object) (*store.Object, error) {
	if err := s.meet(ctx, scenario.OnRemove); err != nil {
		return nil, err
	}
	stored := s.now()
	o, err := s.Backend.Remove(ctx, prev)
	if err == nil {
		s.note(audit.Entry{Revision: o.Revision, Key: o.Key, Stored: stored})
	}
	return o, err
}

// Emit passes on an event that is no state, and notes it.
func (s *Storage) Emit(ctx context.Context, draft *store.Object) (*store.Object, error) {
	if err := s.meet(ctx, scenario.OnEmit); err != nil {
		return nil, err
	}
	item := content.Of(draft)
	item.Stored = s.now()
	o, err := s.Backend.Emit(ctx, draft)
	if err == nil {
		s.note(audit.Entry{Revision: o.Revision, Key: o.Key, Attrs: item.Attrs, Stored: item.Stored, Emitted: true})
	}
	return o, err
}

// Forget makes the storage forget its history.
func (s *Storage) Forget(ctx context.Context) error {
	rev, err := s.Revision(ctx)
	if err != nil {
		return err
	}
	return s.Compact(ctx, rev)
}

// Break ends the watches that run, and returns how many.
func (s *Storage) Break() int { return s.breakWatches(ErrInjected) }

// Expire ends the watches that run as if their place were no longer kept, and
// returns how many.
func (s *Storage) Expire() int { return s.breakWatches(s.tooOld()) }

// tooOld is what a watch ends with whose place is no longer kept.
func (s *Storage) tooOld() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &store.ExpiredError{Requested: s.through, Oldest: s.through + 1}
}
