package storage

import (
	"context"
	"sync"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/scenario"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/faulty"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// Storage is a backend with the faults of a scenario.
type Storage struct {
	*faulty.Backend
	recorder *recorder

	mu sync.Mutex // guards what follows
	// through is what the engine has been given up to.
	through store.Revision
	// holding is how many faults hold. Spared counts the calls of each operation
	// that were made while none did, up to the last time that one began, and ended
	// is how many there were when the last one ended.
	holding       int
	spared, ended map[faulty.Op]uint64
}

// Open opens a backend for objects of a schema, which is closed with the storage.
type Open func(store.Schema) (backend.Backend, error)

// Memory opens an empty backend in memory that has a clock.
func Memory(clock actors.Clock) Open {
	return func(schema store.Schema) (backend.Backend, error) {
		return memory.New(schema, memory.Options{Clock: clock, FirstRevision: 1})
	}
}

// New makes the storage of a plan, over the backend that open returns. What is
// written gets its times from now, in nanoseconds since the run's epoch, and is
// noted in the ledger.
func New(p *scenario.Plan, open Open, now func() int64, ledger *judge.Ledger) (*Storage, error) {
	b, err := open(content.Config(p).Schema())
	if err != nil {
		return nil, err
	}
	s := &Storage{
		recorder: &recorder{Backend: b, ledger: ledger, now: now, writes: make(chan judge.Entry)},
		spared:   map[faulty.Op]uint64{}, ended: map[faulty.Op]uint64{},
	}
	s.Backend = faulty.New(s.recorder, faulty.Options{Blocks: mayHang(p), ShareState: true})
	s.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpWatch, faulty.OpNext}, Do: faulty.After(s.given)})
	return s, nil
}

// mayHang reports whether calls of the plan's storage may hang, so that they must
// not be made on the engine's pool.
func mayHang(p *scenario.Plan) bool {
	for _, f := range p.Faults {
		if f.Kind == scenario.FaultStick || f.Kind == scenario.FaultDelay {
			return true
		}
	}
	return false
}

// given notes what the engine is given. It has one watch at a time. If that starts
// beyond what the one before has delivered, the engine has listed in between, and
// will never see what is in the gap.
func (s *Storage) given(_ context.Context, c *faulty.Call) {
	if c.Err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.Op == faulty.OpNext {
		s.through = max(s.through, c.Batch.Through)
		return
	}
	from := c.WatchOptions.From
	if s.through > 0 && from > s.through {
		s.recorder.ledger.Gap(s.through, from)
	}
	s.through = max(s.through, from)
}

// Writes is where a write is told of as soon as it is stored, if there is a
// receiver at that moment: writes do not wait, so it is a sample of them.
func (s *Storage) Writes() <-chan judge.Entry { return s.recorder.writes }

// Forget makes the storage forget its history.
func (s *Storage) Forget(ctx context.Context) error {
	rev, err := s.recorder.Revision(ctx)
	if err != nil {
		return err
	}
	return s.recorder.Compact(ctx, rev)
}

// Break ends the watches that run, and returns how many.
func (s *Storage) Break() int { return s.BreakWatches(ErrInjected) }

// recorder is a backend that stamps each write with the time and notes it.
type recorder struct {
	backend.Backend
	ledger *judge.Ledger
	now    func() int64
	writes chan judge.Entry
}

var (
	_ backend.Backend = (*recorder)(nil)
	_ backend.Emitter = (*recorder)(nil)
)

// note puts a write down, and tells the receiver that waits for one.
func (r *recorder) note(e judge.Entry) {
	r.ledger.Note(e)
	select {
	case r.writes <- e:
	default:
	}
}

// Put writes one, and notes it.
func (r *recorder) Put(ctx context.Context, draft, prev *store.Object, opts backend.PutOptions) (*store.Object, error) {
	item := content.Of(draft)
	item.Stored = r.now()
	o, err := r.Backend.Put(ctx, draft, prev, opts)
	if err == nil {
		r.note(judge.Entry{Revision: o.Revision, Key: o.Key, Labels: item.Attrs.Labels, Fields: item.Attrs.Fields, Stored: item.Stored})
	}
	return o, err
}

// Remove deletes one, and notes it.
func (r *recorder) Remove(ctx context.Context, prev *store.Object) (*store.Object, error) {
	stored := r.now()
	o, err := r.Backend.Remove(ctx, prev)
	if err == nil {
		r.note(judge.Entry{Revision: o.Revision, Key: o.Key, Deleted: true, Stored: stored})
	}
	return o, err
}

// Emit passes on an event that is no state, and notes it.
func (r *recorder) Emit(ctx context.Context, draft *store.Object) (*store.Object, error) {
	emitter, ok := r.Backend.(backend.Emitter)
	if !ok {
		return nil, store.ErrUnsupported
	}
	item := content.Of(draft)
	item.Stored = r.now()
	o, err := emitter.Emit(ctx, draft)
	if err == nil {
		r.note(judge.Entry{Revision: o.Revision, Key: o.Key, Labels: item.Attrs.Labels, Fields: item.Attrs.Fields, Stored: item.Stored, Emitted: true})
	}
	return o, err
}
