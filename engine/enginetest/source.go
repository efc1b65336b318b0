package enginetest

import (
	"context"
	"sync"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/faulty"
	"github.com/watchmill/watchmill/store/backend/memory"
	"github.com/watchmill/watchmill/usercode"
)

// ErrInjected is the error of calls and watches of a [Source] that fail without another
// error.
var ErrInjected = faulty.ErrInjected

// SourceOptions says which kind of storage a [Source] imitates. The zero value imitates
// storage in memory.
type SourceOptions struct {
	// Clock is the time of the storage, nil the machine's. The clock of the host
	// (engine.Host.Clock) has timers in common with the engine.
	Clock clock.Clock
	// Blocks says that calls may block, so that the engine makes them on its executor
	// for blocking actors.
	Blocks bool
	// Sparse: revisions have gaps, as in storage that other programs share. A change
	// that is hidden from a watch is then lost; without gaps the engine notices the
	// missing revision.
	Sparse bool
}

// Source is versioned storage in memory with faults on demand, for
// engine.Config.Backend. Its own Add, Modify and Delete are like writes through an
// engine.
//
//	engine, Add, Modify, Delete ──▶ memory ──▶ watches ──Next──▶ Reflector
//	                                  ▲           ▲
//	             FailList, FailWatch ─┘           └─ Stall, ResetWatches, Hide, Repeat
//
// It is a [faulty.Backend] with typed writes, and methods for the most common faults.
// Others can be added to its Backend as rules.
//
// All methods are safe for concurrent use, none blocks and none starts a goroutine. The
// faults must not be set from within a watch's Notify.
type Source[T any] struct {
	*faulty.Backend
	schema store.Schema

	// hiding is held while changes are made that watches must not see, and
	// shared by those that read changes.
	hiding sync.RWMutex

	mu             sync.Mutex // guards what follows; never held while others are called
	lists, watches *faulty.Fault
	stalled        *faulty.Fault
	hidden         map[store.Revision]bool
}

// NewSource returns empty storage for objects as cfg describes them. It uses only
// Key, Labels, LabelValues, Fields, Size, Equal and SetRevision of cfg.
func NewSource[T any](cfg engine.Config[T]) *Source[T] { return NewSourceWith(cfg, SourceOptions{}) }

// NewSourceWith is NewSource with options.
func NewSourceWith[T any](cfg engine.Config[T], opts SourceOptions) *Source[T] {
	s := &Source[T]{schema: cfg.Schema(), hidden: make(map[store.Revision]bool)}
	s.Backend = faulty.New(newMemory(s.schema, opts.Clock), faulty.Options{Clock: opts.Clock, Blocks: opts.Blocks, Sparse: opts.Sparse})
	s.Backend.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpNext}, Do: s.hide})
	return s
}

// newMemory is memory.New with an interface as its result, and not inlined: a package that
// mentions a Source would otherwise compile the B-trees of storage in memory.
//
//go:noinline
func newMemory(schema store.Schema, clock clock.Clock) backend.Backend {
	// The only error is that of limits, and none are given.
	b, _ := memory.New(schema, memory.Options{Clock: clock, FirstRevision: 1})
	return b
}

// Replace replaces the storage and returns the old one, for the caller to close. The source's own
// writes are to the new one from now on, and nothing of that is hidden. Running watches stay on the
// old one until they end, and show what Hide has hidden in it, unless they have read past that.
func (s *Source[T]) Replace(by backend.Backend) (old backend.Backend) {
	s.hiding.Lock()
	defer s.hiding.Unlock()
	s.mu.Lock()
	clear(s.hidden)
	s.mu.Unlock()
	return s.Backend.Replace(by)
}

// Add creates an object, as another client of the storage would.
//
// Errors: [engine.ErrExists], [engine.ErrInvalidKey], [store.ErrClosed], a panic
// of the configuration's functions as a [*usercode.PanicError].
func (s *Source[T]) Add(value T) (engine.Revision, error) {
	return revisionOf(s.storage().Create(context.Background(), s.draft(value), backend.CreateOptions{}))
}

// Modify replaces the object that has the value's key. A value that is equal to
// the one there changes nothing.
//
// Errors: [engine.ErrNotFound], and as for Add.
func (s *Source[T]) Modify(value T) (engine.Revision, error) {
	draft := s.draft(value)
	var key string
	if err := usercode.Call("Config.Key", "", func() { key = s.schema.Key(draft) }); err != nil {
		return 0, err
	}
	replace := func(context.Context, *store.Object) (*store.Object, error) { return s.draft(value), nil }
	return revisionOf(s.storage().GuaranteedUpdate(context.Background(), key, replace, backend.UpdateOptions{}))
}

// Delete deletes the object under key.
//
// Errors: as for Modify.
func (s *Source[T]) Delete(key string) (engine.Revision, error) {
	return revisionOf(s.storage().Delete(context.Background(), key, backend.DeleteOptions{}))
}

// storage is for the source's own writes, and no rule applies to them.
func (s *Source[T]) storage() *backend.Storage { return backend.NewStorage(s.Unwrap(), s.schema) }

// draft returns a new object with that value.
func (s *Source[T]) draft(value T) *store.Object {
	o := s.schema.New()
	*s.schema.Pointer(o).(*T) = value
	return o
}

func revisionOf(o *store.Object, err error) (engine.Revision, error) {
	if err != nil {
		return 0, err
	}
	return o.Revision, nil
}
