package storage

import (
	"context"
	"errors"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/explore/internal/execution"
	"github.com/watchmill/watchmill/sim/explore/script"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend/faulty"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// ErrOutage is the error with which storage fails when a scenario says so.
var ErrOutage = errors.New("storage cannot be reached")

// ErrExpired is the error with which storage ends watches that must list again.
var ErrExpired error = &store.ExpiredError{Requested: 1, Oldest: 2}

// SlowCall is how long a slow list takes, in virtual time: longer than some timeouts, and
// shorter than others.
const SlowCall = 2 * time.Second

// Storage is a backend in memory that fails when the scenario says so. A rule
// records in the history every write that it acknowledges, and the changes that its
// watches delivered as events. The faults of the scenario act beneath that rule, and the one that
// shows transactions, if there are any, above it.
//
//	engine ── call ──▶ recordCall ──▶ faults ──▶ memory ──┐ deletes what expires
//	       ◀─ result ── recordCall ◀── faults ◀── memory   │
//	                        └─────────▶ history ◀──────────┘ all writes, and the events that
//	                                                         the engine received
type Storage[T any] struct {
	*faulty.Backend // over a backend in memory, which a rewind replaces
	// Uncached is the access of the engine without a cache, over the same memory; nil if
	// there is none.
	Uncached *faulty.Backend
	// History has all writes. A rewind replaces it.
	History *judge.History[T]
	// Breaks are the errors with which watches were broken, in order.
	Breaks []error
	// FailedCalls is how many calls FailCalls has made fail, and FailedLists how many lists FailLists has.
	FailedCalls, FailedLists uint64
	// Unanswered are the writes that were left without an answer, until the world takes them.
	Unanswered []Unanswered[T]
	// Disturbed: a step has injected a fault, or storage has gone back.
	Disturbed bool
	// ClockJumped: the clock was corrected, so it is not known when objects expire.
	ClockJumped bool
	// Listed is the revision of the newest list by a Reflector; zero if there was none since storage
	// last went back.
	Listed store.Revision
	// Schema is that of the objects, and Equal compares their values.
	Schema store.Schema
	Equal  func(a, b T) bool

	// Fail is called with a failure of storage itself, and must be set.
	Fail func(error)
	// Slow is called by a list that SlowLists delays, and lets turns and time pass. It
	// must be set if the scenario has such lists.
	Slow func()
	// SparesUncached, if set, reports that a break leaves out the watches of Uncached. Only
	// sabotage sets it.
	SparesUncached func() bool

	clock  clock.Clock
	memory memory.Options
	trace  *execution.Trace
	keyOf  func(T) string
	// blocks: a call may block. keepsHistory: the engine is to begin with the history that there is.
	blocks, keepsHistory bool
	// faults are the active faults, by the verb that injected them.
	faults map[script.Verb]*faulty.Fault
	// late are the writes without an answer that are still to be done.
	late []*lateWrite
	// leases are the objects that expire.
	leases leases
	// times are when the changes were made, from the one after the first revision on.
	times []time.Time
	// oldest is the oldest revision that storage served when Floor last asked, and
	// does not decrease when storage goes back.
	oldest store.Revision
}

// New returns storage without objects, as setup says.
func New[T any](cfg *engine.Config[T], clock clock.Clock, setup script.Setup, t *execution.Trace) (*Storage[T], error) {
	s := &Storage[T]{
		Schema: cfg.Schema(), keyOf: cfg.Key, trace: t, faults: map[script.Verb]*faulty.Fault{},
		blocks: setup.Blocks, keepsHistory: setup.KeepsHistory, Equal: equal(cfg),
	}
	s.History = judge.NewHistory(s.Equal)
	s.clock = reaperClock{clock, s.reap}
	s.memory = memory.Options{Clock: s.clock, FirstRevision: 1}
	if setup.SharesState {
		s.memory.Indexes, s.memory.Retain = indexes(cfg, &s.Schema), setup.Window
	}
	if setup.Transactions { // otherwise lost history would make the engine list again
		s.memory.Retain = engine.Window{MinAge: math.MaxInt64, MaxEvents: 1 << 20}
	}
	inner, err := memory.New(s.Schema, s.memory)
	if err != nil {
		return nil, err
	}
	if setup.Uncached {
		s.openUncached(inner, setup)
	}
	s.Backend = faulty.New(inner, faulty.Options{Clock: clock, Blocks: setup.Blocks, Sparse: setup.Transactions, ShareState: setup.SharesState})
	if setup.Transactions {
		s.Add(faulty.Rule{Do: s.showTransactions})
	}
	s.Add(faulty.Rule{Do: faulty.After(s.recordCall)})
	if setup.Batch > 0 {
		s.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpNext}, Do: faulty.Before(func(_ context.Context, c *faulty.Call) { c.Limit = setup.Batch })})
	}
	if setup.NoPrev && !setup.SharesState {
		s.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpNext}, Do: faulty.After(s.leaveOutPrevious)})
	}
	return s, nil
}

// indexes returns the attributes that cfg declares as indexed. It leaves out names of
// fields that are not declared: the engine refuses a configuration with them.
func indexes[T any](cfg *engine.Config[T], schema *store.Schema) (all []store.Attribute) {
	for _, name := range cfg.Index {
		if a, err := schema.Fields.Attribute(name); err == nil {
			all = append(all, a)
		}
	}
	for _, name := range cfg.IndexLabels {
		all = append(all, store.LabelAttribute(name))
	}
	return all
}

// equal returns the comparison of cfg or, if there is none, one by [reflect.DeepEqual], as the
// engine does. It ignores the revisions that values carry: the object of a deletion has another
// one than the last state.
func equal[T any](cfg *engine.Config[T]) func(a, b T) bool {
	same, set := cfg.Equal, cfg.SetRevision
	if same == nil {
		same = func(a, b T) bool { return reflect.DeepEqual(a, b) }
	}
	if set == nil {
		return same
	}
	return func(a, b T) bool { return same(set(a, judge.First), set(b, judge.First)) }
}

// recordCall records a call that has returned, in the history and in the trace.
func (s *Storage[T]) recordCall(_ context.Context, c *faulty.Call) {
	switch c.Op {
	case faulty.OpPut, faulty.OpRemove, faulty.OpEmit:
		if c.Err == nil {
			s.recordWrite(c)
		}
	case faulty.OpList:
		if c.Err != nil {
			s.trace.Call("list", 0, 0, c.Err)
			return
		}
		if c.ListOptions.Revision == 0 && c.ListOptions.Limit == reflector.DefaultPageSize {
			s.Listed = c.Page.Revision
		}
		s.trace.Call("list", c.Page.Revision, len(c.Page.Items), nil)
	case faulty.OpWatch:
		s.trace.Call("watch", c.WatchOptions.From, 0, c.Err)
	case faulty.OpNext:
		if c.Err == nil && len(c.Batch.Events) == 0 {
			return
		}
		s.History.MarkReceivedBatch(c.Batch)
		s.trace.Call("next", c.Batch.Through, len(c.Batch.Events), c.Err)
	}
}

// leaveOutPrevious leaves out what a batch has of the states before its events, as storage may for a watch
// with NoPrev.
func (s *Storage[T]) leaveOutPrevious(_ context.Context, c *faulty.Call) {
	events := slices.Clone(c.Batch.Events)
	for i, ev := range events {
		events[i].Prev = nil
		if ev.Type == store.Deleted {
			gone := s.Schema.New()
			gone.Key, gone.Revision, gone.Written = ev.Object.Key, ev.Object.Revision, ev.Object.Written
			events[i].Object = gone
		}
	}
	c.Batch.Events = events
}

// recordWrite records a write, which must have the revision after the newest.
func (s *Storage[T]) recordWrite(c *faulty.Call) {
	var next store.Revision
	switch o := c.Object; c.Op {
	case faulty.OpPut:
		next = s.History.Put(o.Key, s.value(o))
		if !c.PutOptions.KeepExpiry {
			s.leases.set(o.Key, s.until(c.PutOptions.TTL))
		}
	case faulty.OpRemove:
		next = s.History.Delete(o.Key)
		s.leases.set(o.Key, time.Time{})
	case faulty.OpEmit:
		next = s.History.Emit(o.Key, s.value(o))
	}
	s.History.Date(c.Object.Written, c.Object.Expires)
	s.stamp()
	if c.Object.Revision != next {
		s.Fail(judge.Failed(judge.Acknowledged, "storage", "it gave a change revision %d, the next is %d", c.Object.Revision, next))
	}
}

// value returns the object's value.
func (s *Storage[T]) value(o *store.Object) T { return *s.Schema.Pointer(o).(*T) }

// newObject returns a new object with key and value, and the attributes that the schema
// derives from them.
func (s *Storage[T]) newObject(key string, value T) *store.Object {
	o := s.Schema.New()
	o.Key, *s.Schema.Pointer(o).(*T) = key, value
	s.Schema.Describe(o)
	return o
}

// stamp records that the changes of which it was not recorded were made now.
func (s *Storage[T]) stamp() {
	for store.Revision(len(s.times)) < s.History.Newest()-judge.First {
		s.times = append(s.times, s.clock.Now())
	}
}

// Age returns how long ago the change at rev, which is above the first revision, was made.
func (s *Storage[T]) Age(rev store.Revision) time.Duration {
	return s.clock.Now().Sub(s.times[rev-judge.First-1])
}
