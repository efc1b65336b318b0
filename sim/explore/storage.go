package explore

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/sim/mishap"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// errOutage is what storage fails with when a scenario says so.
var errOutage = errors.New("storage cannot be reached")

// errExpired is what storage ends watches with that it makes start over.
var errExpired error = &store.ExpiredError{Requested: 1, Oldest: 2}

// storage is a backend in memory that fails when the scenario says so. It notes
// every write that it acknowledges in the history, and which changes it has
// shown as they happened.
//
//	engine ── writes ──▶ storage ──▶ memory ──┐ deletes what expires
//	                        └──────▶ history ◀┘  what is true from now on
//	engine ◀─ batches ── storage ◀── memory
//	                        └──────▶ history     what the engine was given
type storage[T any] struct {
	backend.Backend // in memory; another one after a rewind
	schema          store.Schema
	keyOf           func(T) string
	clock           backend.Clock
	traits          backend.Traits
	trace           *trace
	history         *judge.History[T]

	// batch is the most events that a watch hands out at once; zero is no limit.
	batch int
	// failLists and failWatches count the calls that will fail, slowLists those
	// that have slow called before they return.
	failLists, failWatches, slowLists int
	slow                              func()
	mishap.Mishaps
	// blocked: watches hand out nothing. restoring: nothing can be written.
	blocked, restoring bool

	// leases are what expires. jumped: the clock was corrected, so that it is not
	// known when. fail is told what is wrong with storage itself.
	leases leases
	jumped bool
	fail   func(error)

	open []*storageWatch[T]
}

var _ backend.Emitter = (*storage[int])(nil)

func newStorage[T any](cfg *engine.Config[T], clock backend.Clock, setup Setup, t *trace) (*storage[T], error) {
	s := &storage[T]{
		schema: cfg.Schema(), keyOf: cfg.Key, trace: t, batch: setup.Batch,
		history: judge.NewHistory(equal(cfg.Equal)),
	}
	s.clock = reaperClock{clock, s.reap}
	inner, err := memory.New(s.schema, memory.Options{Clock: s.clock})
	if err != nil {
		return nil, err
	}
	s.Backend, s.traits = inner, inner.Traits()
	s.traits.Blocks = setup.Blocks
	return s, nil
}

// equal returns what compares values if the configuration says f.
func equal[T any](f func(a, b T) bool) func(a, b T) bool {
	if f != nil {
		return f
	}
	return func(a, b T) bool { return reflect.DeepEqual(a, b) }
}

// Traits are as the setup says.
func (s *storage[T]) Traits() backend.Traits { return s.traits }

// Put writes and notes it.
func (s *storage[T]) Put(ctx context.Context, draft, prev *store.Object, opts backend.PutOptions) (*store.Object, error) {
	if s.restoring {
		return nil, errOutage
	}
	o, err := s.Backend.Put(ctx, draft, prev, opts)
	if err == nil {
		s.gave(o.Revision, s.history.Put(o.Key, s.value(o)))
		s.leases.set(o.Key, s.until(opts.TTL))
	}
	return o, err
}

// Remove deletes and notes it.
func (s *storage[T]) Remove(ctx context.Context, prev *store.Object) (*store.Object, error) {
	if s.restoring {
		return nil, errOutage
	}
	o, err := s.Backend.Remove(ctx, prev)
	if err == nil {
		s.gave(o.Revision, s.history.Delete(o.Key))
		s.leases.set(o.Key, time.Time{})
	}
	return o, err
}

// Emit passes a value through and notes it.
func (s *storage[T]) Emit(ctx context.Context, draft *store.Object) (*store.Object, error) {
	if s.restoring {
		return nil, errOutage
	}
	o, err := s.Backend.(backend.Emitter).Emit(ctx, draft)
	if err == nil {
		s.gave(o.Revision, s.history.Emit(o.Key, s.value(o)))
	}
	return o, err
}

// value returns the object's value.
func (s *storage[T]) value(o *store.Object) T { return *s.schema.Pointer(o).(*T) }

// draft returns a new object with that key and value, described by the schema.
func (s *storage[T]) draft(key string, value T) *store.Object {
	o := s.schema.New()
	o.Key, *s.schema.Pointer(o).(*T) = key, value
	s.schema.Describe(o)
	return o
}

// gave fails unless storage has given a change the revision that is next.
func (s *storage[T]) gave(rev, next store.Revision) {
	if rev != next {
		s.fail(judge.Failed(judge.Acknowledged, "storage", "it gave a change revision %d, the next is %d", rev, next))
	}
}

// List fails, or takes its time, if it is to.
func (s *storage[T]) List(ctx context.Context, opts backend.ListOptions) (*backend.List, error) {
	if s.failLists > 0 {
		s.failLists--
		s.trace.call("list", 0, 0, errOutage)
		return nil, errOutage
	}
	l, err := s.Backend.List(ctx, opts)
	if err != nil {
		s.trace.call("list", 0, 0, err)
		return nil, err
	}
	s.trace.call("list", l.Revision, len(l.Items), nil)
	if s.slowLists > 0 && s.traits.Blocks {
		s.slowLists--
		s.slow()
	}
	return l, ctx.Err()
}

// Watch starts a watch that can be broken, unless it is to fail.
func (s *storage[T]) Watch(ctx context.Context, opts backend.WatchOptions) (backend.Watcher, error) {
	if s.failWatches > 0 {
		s.failWatches--
		s.trace.call("watch", opts.From, 0, errOutage)
		return nil, errOutage
	}
	w := &storageWatch[T]{storage: s, tell: opts.Notify}
	opts.Notify = w.notify
	inner, err := s.Backend.Watch(ctx, opts)
	s.trace.call("watch", opts.From, 0, err)
	if err != nil {
		return nil, err
	}
	w.Watcher, w.through = inner, opts.From
	s.open = append(s.open, w)
	return w, nil
}

// sever ends the running watches with err.
func (s *storage[T]) sever(err error) {
	for _, w := range slices.Clone(s.open) {
		w.broken = err
		w.tell()
	}
}

// unblock lets watches hand out what there is.
func (s *storage[T]) unblock() {
	s.blocked = false
	for _, w := range slices.Clone(s.open) {
		w.tell()
	}
}

// heal makes storage good from now on.
func (s *storage[T]) heal() {
	s.failLists, s.failWatches, s.slowLists, s.Mishaps = 0, 0, 0, mishap.Mishaps{}
	s.unblock()
}

// rewind takes storage back to rev, as when it is restored from a backup: what
// was written since never happened, others are written instead, and nothing
// expires any more. Watches end with err.
func (s *storage[T]) rewind(rev store.Revision, others []T, err error) error {
	inner, failed := memory.New(s.schema, memory.Options{Clock: s.clock})
	if failed != nil {
		return failed
	}
	ctx := context.Background()
	put := func(key string, value T) error {
		prev, err := inner.Get(ctx, key)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		_, err = inner.Put(ctx, s.draft(key, value), prev, backend.PutOptions{})
		return err
	}
	emit := func(key string, value T) error {
		_, err := inner.Emit(ctx, s.draft(key, value))
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
	s.sever(err)
	old := s.Backend
	s.Backend, s.history, s.leases = inner, s.history.Fork(rev), nil
	for _, value := range others {
		key := s.keyOf(value)
		if failed := put(key, value); failed != nil {
			return failed
		}
		s.history.Put(key, value)
	}
	return old.Close()
}

// slowCall is how long a slow list takes: longer than some timeouts, shorter
// than others.
const slowCall = 2 * time.Second

// storageWatch is a watch on storage.
type storageWatch[T any] struct {
	backend.Watcher
	storage *storage[T]
	tell    func()
	broken  error
	through store.Revision
}

func (w *storageWatch[T]) notify() {
	if !w.storage.blocked {
		w.tell()
	}
}

// Next returns the next batch, spoilt if it is to be.
func (w *storageWatch[T]) Next(limit int) (backend.Batch, error) {
	s := w.storage
	if w.broken != nil {
		s.trace.call("next", 0, 0, w.broken)
		return backend.Batch{}, w.broken
	}
	if s.blocked {
		return backend.Batch{After: w.through, Through: w.through}, nil
	}
	if s.batch > 0 {
		limit = s.batch
	}
	batch, err := w.Watcher.Next(limit)
	if err != nil || len(batch.Events) == 0 {
		return batch, err
	}
	w.through = batch.Through
	batch = mishap.Spoil(&s.Mishaps, batch)
	s.history.Given(batch)
	s.trace.call("next", batch.Through, len(batch.Events), nil)
	return batch, nil
}

// Close ends the watch.
func (w *storageWatch[T]) Close() {
	s := w.storage
	s.open = slices.DeleteFunc(s.open, func(other *storageWatch[T]) bool { return other == w })
	w.Watcher.Close()
}
