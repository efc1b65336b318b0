package storage

import (
	"context"
	"errors"
	"sync"

	"github.com/watchmill/watchmill/clock"
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

	mu sync.Mutex // guards the fields below
	// through is the revision up to which the engine has received events.
	through store.Revision
	// active is the number of faults that last now. Conditions do not count calls made
	// while there is none: uncounted is the number of these calls, by operation, before
	// the current or latest period with faults, and ended is the number of all calls at
	// the end of that period.
	active           int
	uncounted, ended map[faulty.Op]uint64
}

// Open opens a backend for objects of a schema, which is closed with the storage.
type Open func(store.Schema) (backend.Backend, error)

// Memory returns an Open that makes an empty backend in memory, which uses the clock.
func Memory(clock clock.Clock) Open {
	return func(schema store.Schema) (backend.Backend, error) {
		return memory.New(schema, memory.Options{Clock: clock, FirstRevision: 1})
	}
}

// New makes the storage of a plan over the backend that open returns. now returns the
// time of a write, in nanoseconds since the run's epoch; the ledger records it.
func New(p *scenario.Plan, open Open, now func() int64, ledger *judge.Ledger) (*Storage, error) {
	b, err := open(content.Config(p).Schema())
	if err != nil {
		return nil, err
	}
	s := &Storage{
		recorder:  &recorder{Backend: b, ledger: ledger, now: now, writes: make(chan judge.Entry)},
		uncounted: map[faulty.Op]uint64{}, ended: map[faulty.Op]uint64{},
	}
	s.Backend = faulty.New(s.recorder, faulty.Options{Blocks: mayHang(p), ShareState: true})
	s.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpWatch, faulty.OpNext}, Do: faulty.After(s.delivered)})
	return s, nil
}

// mayHang reports whether faults of the plan can make calls hang or take long, so that the
// engine must not make them on its pool.
func mayHang(p *scenario.Plan) bool {
	for _, f := range p.Faults {
		if f.Kind == scenario.FaultStick || f.Kind == scenario.FaultDelay {
			return true
		}
	}
	return false
}

// delivered records up to which revision the engine has received events. The engine has one
// watch of storage at a time. If a watch starts beyond what the previous one has delivered,
// the engine has listed in between and will not receive the events in the gap.
func (s *Storage) delivered(_ context.Context, c *faulty.Call) {
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

// Writes returns a channel to which each write is sent as soon as it is stored, if the
// channel has a receiver at that moment. Writes do not wait for one, so the channel has a
// sample of them.
func (s *Storage) Writes() <-chan judge.Entry { return s.recorder.writes }

// Forget compacts the whole history. It returns the error of the backend.
func (s *Storage) Forget(ctx context.Context) error {
	rev, err := s.recorder.Revision(ctx)
	if err != nil {
		return err
	}
	return s.recorder.Compact(ctx, rev)
}

// Break ends all open watches with an error and returns their number.
func (s *Storage) Break() int { return s.BreakWatches(ErrInjected) }

// recorder is a backend that stamps each write with the time and records it.
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

// Unwrap returns the backend that the recorder decorates.
func (r *recorder) Unwrap() backend.Backend { return r.Backend }

// note records a write and sends it to a waiting receiver, if any.
func (r *recorder) note(e judge.Entry) {
	r.ledger.Note(e)
	select {
	case r.writes <- e:
	default:
	}
}

// Put stores and records an object.
func (r *recorder) Put(ctx context.Context, draft, prev *store.Object, opts backend.PutOptions) (*store.Object, error) {
	item := content.Of(draft)
	item.Stored = r.now()
	o, err := r.Backend.Put(ctx, draft, prev, opts)
	if err == nil {
		r.note(judge.Entry{Revision: o.Revision, Key: o.Key, Labels: item.Attrs.Labels, Fields: item.Attrs.Fields, Stored: item.Stored})
	}
	return o, err
}

// Remove deletes an object and records that.
func (r *recorder) Remove(ctx context.Context, prev *store.Object) (*store.Object, error) {
	stored := r.now()
	o, err := r.Backend.Remove(ctx, prev)
	if err == nil {
		r.note(judge.Entry{Revision: o.Revision, Key: o.Key, Deleted: true, Stored: stored})
	}
	return o, err
}

// Emit emits and records a value.
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

// ErrInjected is the error of calls that a fault makes fail.
var ErrInjected = errors.New("failed by the scenario")

// operations maps the storage's operations to those that conditions name.
var operations = map[faulty.Op]scenario.Operation{
	faulty.OpGet: scenario.OnGet, faulty.OpList: scenario.OnList, faulty.OpPut: scenario.OnPut,
	faulty.OpRemove: scenario.OnRemove, faulty.OpEmit: scenario.OnEmit,
	faulty.OpWatch: scenario.OnWatch, faulty.OpNext: scenario.OnNext, faulty.OpRevision: scenario.OnRevision,
}

// Begin starts a fault that lasts until [Storage.End].
func (s *Storage) Begin(f *scenario.Fault) *faulty.Fault {
	s.mu.Lock()
	if s.active++; s.active == 1 {
		for op := range operations {
			s.uncounted[op] += s.Calls(op) - s.ended[op]
		}
	}
	s.mu.Unlock()
	rule := faulty.Rule{When: func(c *faulty.Call) bool { return s.hits(f, c) }}
	switch f.Kind {
	case scenario.FaultFail:
		rule.Do = faulty.Fail(ErrInjected)
	case scenario.FaultDelay:
		rule.Do = faulty.Delay(f.Delay)
	case scenario.FaultStick:
		rule.Do = faulty.Hang()
	}
	return s.Add(rule)
}

// End ends a fault that Begin started.
func (s *Storage) End(f *faulty.Fault) {
	f.Remove()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active--; s.active == 0 {
		for op := range operations {
			s.ended[op] = s.Calls(op)
		}
	}
}

// hits reports whether a fault hits a call. Conditions count the calls of an operation
// that are made while any fault is active.
func (s *Storage) hits(f *scenario.Fault, c *faulty.Call) bool {
	op, named := operations[c.Op]
	if !named {
		return false
	}
	s.mu.Lock()
	number := c.Number - min(c.Number, s.uncounted[c.Op]+1)
	s.mu.Unlock()
	return f.When.Holds(op, number)
}
