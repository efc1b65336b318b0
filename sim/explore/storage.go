package explore

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/explore/script"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/faulty"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// errOutage is the error with which storage fails when a scenario says so.
var errOutage = errors.New("storage cannot be reached")

// errExpired is the error with which storage ends watches that must list again.
var errExpired error = &store.ExpiredError{Requested: 1, Oldest: 2}

// storage is a backend in memory that fails when the scenario says so. Its first rule
// records in the history every write that it acknowledges, and the changes that its
// watches delivered as events. The faults of the scenario act beneath that rule.
//
//	engine ── call ──▶ recordCall ──▶ faults ──▶ memory ──┐ deletes what expires
//	       ◀─ result ── recordCall ◀── faults ◀── memory   │
//	                        └─────────▶ history ◀──────────┘ all writes, and the events that
//	                                                         the engine received
type storage[T any] struct {
	*faulty.Backend // over a backend in memory, which a rewind replaces
	schema          store.Schema
	keyOf           func(T) string
	clock           clock.Clock
	memory          memory.Options
	trace           *trace
	history         *judge.History[T]

	// faults are the active faults, by the verb that injected them.
	faults map[script.Verb]*faulty.Fault
	// slow is called by a list that SlowLists delays, and lets turns and time pass.
	slow func()

	// leases are the objects that expire. clockJumped: the clock was corrected, so it is not
	// known when they do. fail is called with a failure of storage itself.
	leases leases
	// direct is the access of the engine without a cache, over the same memory; nil if
	// there is none. breaks are the errors with which watches were broken, in order.
	// sparesDirect, if set, reports that a break leaves out the watches of direct; only
	// sabotage sets it.
	direct *faulty.Backend
	breaks []error
	// floor is the oldest revision that storage served when compacted last asked, and
	// does not decrease when storage goes back.
	floor        store.Revision
	sparesDirect func() bool
	clockJumped  bool
	fail         func(error)
}

func newStorage[T any](cfg *engine.Config[T], clock clock.Clock, setup script.Setup, t *trace) (*storage[T], error) {
	s := &storage[T]{
		schema: cfg.Schema(), keyOf: cfg.Key, trace: t, faults: map[script.Verb]*faulty.Fault{},
		history: judge.NewHistory(equal(cfg.Equal)),
	}
	s.clock = reaperClock{clock, s.reap}
	s.memory = memory.Options{Clock: s.clock, FirstRevision: 1}
	if setup.Adopted {
		s.memory.Indexes, s.memory.Retain = indexes(cfg, &s.schema), setup.Window
	}
	if setup.Transactions { // otherwise lost history would make the engine list again
		s.memory.Retain = engine.Window{MinAge: 1000 * time.Hour, MaxEvents: 1 << 20}
	}
	inner, err := memory.New(s.schema, s.memory)
	if err != nil {
		return nil, err
	}
	if setup.Direct {
		s.openDirect(inner, setup)
	}
	s.Backend = faulty.New(inner, faulty.Options{Clock: clock, Blocks: setup.Blocks, Sparse: setup.Transactions, ShareState: setup.Adopted})
	if setup.Transactions {
		s.Add(faulty.Rule{Do: s.showTransactions})
	}
	s.Add(faulty.Rule{Do: faulty.After(s.recordCall)})
	if setup.Batch > 0 {
		s.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpNext}, Do: faulty.Before(func(_ context.Context, c *faulty.Call) { c.Max = setup.Batch })})
	}
	return s, nil
}

// indexes returns the attributes that cfg declares as indexed. It leaves out names of
// fields that are not declared, for which the engine refuses the configuration.
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

// equal returns f or, if that is nil, a comparison by [reflect.DeepEqual], as the engine
// does.
func equal[T any](f func(a, b T) bool) func(a, b T) bool {
	if f != nil {
		return f
	}
	return func(a, b T) bool { return reflect.DeepEqual(a, b) }
}

// recordCall records a call that has returned, in the history and in the trace.
func (s *storage[T]) recordCall(_ context.Context, c *faulty.Call) {
	switch c.Op {
	case faulty.OpPut, faulty.OpRemove, faulty.OpEmit:
		if c.Err == nil {
			s.recordWrite(c)
		}
	case faulty.OpList:
		if c.Err != nil {
			s.trace.call("list", 0, 0, c.Err)
			return
		}
		s.trace.call("list", c.Page.Revision, len(c.Page.Items), nil)
	case faulty.OpWatch:
		s.trace.call("watch", c.WatchOptions.From, 0, c.Err)
	case faulty.OpNext:
		if c.Err == nil && len(c.Batch.Events) == 0 {
			return
		}
		s.history.MarkReceivedBatch(c.Batch)
		s.trace.call("next", c.Batch.Through, len(c.Batch.Events), c.Err)
	}
}

// recordWrite records a write, which must have the revision after the newest.
func (s *storage[T]) recordWrite(c *faulty.Call) {
	var next store.Revision
	switch o := c.Object; c.Op {
	case faulty.OpPut:
		next = s.history.Put(o.Key, s.value(o))
		if !c.PutOptions.KeepExpiry {
			s.leases.set(o.Key, s.until(c.PutOptions.TTL))
		}
	case faulty.OpRemove:
		next = s.history.Delete(o.Key)
		s.leases.set(o.Key, time.Time{})
	case faulty.OpEmit:
		next = s.history.Emit(o.Key, s.value(o))
	}
	if c.Object.Revision != next {
		s.fail(judge.Failed(judge.Acknowledged, "storage", "it gave a change revision %d, the next is %d", c.Object.Revision, next))
	}
}

// value returns the object's value.
func (s *storage[T]) value(o *store.Object) T { return *s.schema.Pointer(o).(*T) }

// newObject returns a new object with key and value, and the attributes that the schema
// derives from them.
func (s *storage[T]) newObject(key string, value T) *store.Object {
	o := s.schema.New()
	o.Key, *s.schema.Pointer(o).(*T) = key, value
	s.schema.Describe(o)
	return o
}

// inject adds r as the fault of a verb, in place of the fault that the verb injected
// before.
func (s *storage[T]) inject(verb script.Verb, r faulty.Rule) {
	s.end(verb)
	s.faults[verb] = s.Add(r)
}

// end removes the fault of a verb, if there is one.
func (s *storage[T]) end(verb script.Verb) {
	if f := s.faults[verb]; f != nil {
		f.Remove()
	}
	delete(s.faults, verb)
}

// unblock ends the fault of Block and wakes the watches, even if there was no such fault.
func (s *storage[T]) unblock() {
	s.end(script.Block)
	s.Wake()
}

// removeFaults removes all faults and wakes the watches.
func (s *storage[T]) removeFaults() {
	for _, verb := range slices.Sorted(maps.Keys(s.faults)) {
		s.end(verb)
	}
	s.unblock()
}

// delayed makes a list slow. Its context may end meanwhile, which fails the list; a list
// that had failed already does not count as one of the fault's.
func (s *storage[T]) delayed(ctx context.Context, c *faulty.Call) {
	if c.Err != nil {
		c.Spare()
		return
	}
	s.slow()
	c.Err = ctx.Err()
}

// rewind takes storage back to rev, as when it is restored from a backup: later writes are
// gone, others are written in their place, and no object expires any more. Watches end
// with err.
func (s *storage[T]) rewind(rev store.Revision, others []T, err error) error {
	inner, failed := memory.New(s.schema, s.memory)
	if failed != nil {
		return failed
	}
	ctx := context.Background()
	put := func(key string, value T) error {
		prev, err := inner.Get(ctx, key)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		_, err = inner.Put(ctx, s.newObject(key, value), prev, backend.PutOptions{})
		return err
	}
	emit := func(key string, value T) error {
		_, err := inner.Emit(ctx, s.newObject(key, value))
		return err
	}
	remove := func(key string) error {
		was, err := inner.Get(ctx, key)
		if err == nil {
			_, err = inner.Remove(ctx, was)
		}
		return err
	}
	if failed := s.history.Replay(rev, put, emit, remove); failed != nil {
		return failed
	}
	s.compacted()
	s.BreakWatches(err)
	old := s.Replace(inner)
	if s.direct != nil {
		s.direct.Replace(inner)
	}
	s.history, s.leases = s.history.Fork(rev), nil
	for _, value := range others {
		key := s.keyOf(value)
		if failed := put(key, value); failed != nil {
			return failed
		}
		s.history.Put(key, value)
	}
	return old.Close()
}

// slowCall is how long a slow list takes, in virtual time: longer than some timeouts, and
// shorter than others.
const slowCall = 2 * time.Second
