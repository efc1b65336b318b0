package queue

import (
	"context"

	"github.com/watchmill/watchmill/store"
)

// DefaultMaxDeltas is how many deltas a [DeltaFIFO] keeps for one object: more
// than a consumer that keeps up will ever see.
const DefaultMaxDeltas = 100

// DeltaFIFOConfig says how a [DeltaFIFO] works. Only Key is required.
type DeltaFIFOConfig[T any] struct {
	// Key returns the key of an object.
	Key store.KeyFunc[T]
	// Known, if any, is what the consumer knows. Without it, deletions are told
	// only of objects that are queued, and Resync does nothing.
	Known KnownObjects[T]
	// Transform, if any, changes an object before it is queued, say to drop
	// what nobody reads. It is called exactly once for each object that comes
	// in, and not for what comes from Known or in a tombstone.
	Transform func(T) (T, error)
	// OnBadItem, if any, is told of objects in a Replace whose Key or Transform
	// fails. They are left out and the rest is replaced; what is known of them
	// stays. Nil means that such an object fails the Replace.
	OnBadItem func(object T, err error)
	// ReplaceAsSync makes Replace tell objects as DeltaSync instead of
	// DeltaReplaced.
	ReplaceAsSync bool
	// MaxDeltas is how many deltas are kept for one object, at least 2; zero
	// means DefaultMaxDeltas. Above it, older states are forgotten, though not
	// that there were deletions: an object's deltas may then begin with a
	// DeltaUpdated even if the consumer never heard of it.
	MaxDeltas int
}

// DeltaFIFO is a queue of what happened to objects, gathered by object: an
// object is queued once, at the position where it came in, with all that
// happened to it since. The order is kept for each object, not across objects.
// Make one with [NewDeltaFIFO].
//
// It is safe for concurrent use. Only Pop blocks.
type DeltaFIFO[T any] struct {
	gate    gate
	in      intake[T]
	cfg     DeltaFIFOConfig[T]
	entries linked[deltaEntry[T]]
	// popped is the newest of what is being processed, or nil: the consumer
	// knows of it, though Known may not show it yet.
	popped *Delta[T]
}

type deltaEntry[T any] struct {
	deltas  Deltas[T]
	initial bool
}

// NewDeltaFIFO returns an empty queue. The error is a [*ConfigError].
func NewDeltaFIFO[T any](cfg DeltaFIFOConfig[T]) (*DeltaFIFO[T], error) {
	if cfg.MaxDeltas == 0 {
		cfg.MaxDeltas = DefaultMaxDeltas
	}
	switch {
	case cfg.Key == nil:
		return nil, &ConfigError{"DeltaFIFOConfig.Key", "it is nil: give a function that returns an object's key"}
	case cfg.MaxDeltas < 2:
		return nil, &ConfigError{"DeltaFIFOConfig.MaxDeltas", "it is less than 2: give 0 for the default"}
	}
	q := &DeltaFIFO[T]{in: intake[T]{cfg.Key, cfg.Transform, cfg.OnBadItem}, cfg: cfg}
	q.gate.init(func() bool { return q.entries.len() > 0 })
	return q, nil
}

// Add queues that object came to be. The errors are [*store.KeyFuncError],
// [*store.TransformError] and [ErrClosed].
func (q *DeltaFIFO[T]) Add(object T) error { return q.take(DeltaAdded, object) }

// Update queues that object changed. The errors are those of Add.
func (q *DeltaFIFO[T]) Update(object T) error { return q.take(DeltaUpdated, object) }

func (q *DeltaFIFO[T]) take(t DeltaType, object T) error {
	o, err := q.in.one(object)
	if err != nil {
		return err
	}
	if err := q.gate.open(); err != nil {
		return err
	}
	defer q.gate.mu.Unlock()
	q.enqueue(Delta[T]{Type: t, Key: o.key, Object: o.object}, false)
	q.gate.touched()
	return nil
}

// Delete queues that object is gone, this being its last state. It does nothing
// if nobody ever heard of it: if it is neither queued, nor being processed, nor
// known. The errors are those of Add.
func (q *DeltaFIFO[T]) Delete(object T) error {
	o, err := q.in.one(object)
	if err != nil {
		return err
	}
	return q.DeleteTombstone(Deleted[T]{Key: o.key, Last: o.object, Known: true})
}

// DeleteTombstone is Delete for an object whose last state may be unknown or
// stale. The tombstone is taken as it is. The errors are [ErrClosed] and the
// panics of Known as [*store.PanicError].
func (q *DeltaFIFO[T]) DeleteTombstone(gone Deleted[T]) (err error) {
	if err := q.gate.open(); err != nil {
		return err
	}
	defer q.gate.mu.Unlock()
	defer recovered(&err)
	if q.heardOf(gone.Key) {
		q.enqueue(Delta[T]{Type: DeltaDeleted, Key: gone.Key, Deleted: &gone}, false)
	}
	q.gate.touched()
	return nil
}

// heardOf reports whether the consumer knows or will know of key.
func (q *DeltaFIFO[T]) heardOf(key string) bool {
	if q.entries.at(key) != nil {
		return true
	}
	if q.cfg.Known == nil {
		return false
	}
	if q.popped != nil && q.popped.Key == key {
		return true
	}
	_, exists := q.cfg.Known.GetByKey(key)
	return exists
}

// Replace queues that objects are all that there is, as listed at revision rev:
// first each of them, then a deletion of all else that is queued or known. The
// errors are those of Add, and leave everything as it was.
func (q *DeltaFIFO[T]) Replace(objects []T, rev store.Revision) (err error) {
	list, err := q.in.all(objects)
	if err != nil {
		return err
	}
	if err := q.gate.open(); err != nil {
		return err
	}
	defer q.gate.mu.Unlock()
	defer recovered(&err)
	gone := missing(&list, q.pending(), q.cfg.Known)
	initial := !q.gate.isSynced()
	told := DeltaReplaced
	if q.cfg.ReplaceAsSync {
		told = DeltaSync
	}
	for _, o := range list.objects {
		q.enqueue(Delta[T]{Type: told, Key: o.key, Object: o.object, Revision: rev}, initial)
	}
	for _, d := range gone {
		q.enqueue(Delta[T]{Type: DeltaDeleted, Key: d.Key, Deleted: d}, initial)
	}
	q.gate.touched()
	return nil
}

// Resync tells every known object again, except those of which something is
// queued or being processed. The errors are [ErrClosed] and the panics of Known
// as [*store.PanicError].
func (q *DeltaFIFO[T]) Resync() (err error) {
	if err := q.gate.open(); err != nil {
		return err
	}
	defer q.gate.mu.Unlock()
	defer recovered(&err)
	for _, o := range quiet(q.pending(), q.cfg.Known) {
		q.enqueue(Delta[T]{Type: DeltaSync, Key: o.key, Object: o.object}, false)
	}
	return nil
}

// pending gathers what the consumer will know. The caller has the lock.
func (q *DeltaFIFO[T]) pending() *pending[T] {
	p := new(pending[T])
	if q.popped != nil && q.cfg.Known != nil {
		note(p, q.popped)
	}
	for _, entry := range q.entries.all() {
		note(p, entry.deltas.Newest())
	}
	return p
}

// enqueue appends d to what is queued of its object. The caller has the lock.
func (q *DeltaFIFO[T]) enqueue(d Delta[T], initial bool) {
	entry := q.entries.at(d.Key)
	if entry == nil {
		entry = q.entries.push(d.Key)
		q.gate.turn.Signal()
	}
	entry.deltas = append(entry.deltas, d).compacted(q.cfg.MaxDeltas)
	if initial && !entry.initial {
		entry.initial = true
		q.gate.initial++
	}
}

// Pop waits for an object, takes it out and calls process with what happened to
// it; initial tells whether it was in the first Replace. process owns the
// deltas. Pop returns what process returns, its panic as a [*store.PanicError],
// ctx's error if ctx ends first, and [ErrClosed] once the queue is closed and
// empty.
//
// One call processes at a time, and the others wait. process may use the queue,
// except for Pop. What failed is not queued again: that would put old state
// behind new.
func (q *DeltaFIFO[T]) Pop(ctx context.Context, process func(deltas Deltas[T], initial bool) error) (err error) {
	if err := q.gate.enter(ctx); err != nil {
		return err
	}
	entry := q.entries.pop()
	newest := *entry.deltas.Newest()
	q.popped = &newest
	q.gate.mu.Unlock()
	defer func() {
		q.gate.mu.Lock()
		defer q.gate.mu.Unlock()
		q.popped = nil
		q.gate.leave(count(entry.initial))
	}()
	defer recovered(&err)
	return process(entry.deltas, entry.initial)
}

// KeyOf returns the key of object. The error is a [*store.KeyFuncError]. The key
// of a [Delta], of [Deltas] or of a [Deleted] is in it.
func (q *DeltaFIFO[T]) KeyOf(object T) (string, error) { return q.in.keyOf(object) }

// Len returns the number of objects of which something is queued.
func (q *DeltaFIFO[T]) Len() int {
	q.gate.mu.Lock()
	defer q.gate.mu.Unlock()
	return q.entries.len()
}

// HasSynced reports whether everything in the first Replace, its deletions too,
// has been processed. A queue whose first change is not a Replace has synced at
// once.
func (q *DeltaFIFO[T]) HasSynced() bool { return q.gate.hasSynced() }

// Done returns a channel that is closed when the queue has synced.
func (q *DeltaFIFO[T]) Done() <-chan struct{} { return q.gate.synced }

// Close refuses what comes from now on. What is queued can still be popped.
func (q *DeltaFIFO[T]) Close() { q.gate.close() }

// IsClosed reports whether the queue was closed.
func (q *DeltaFIFO[T]) IsClosed() bool { return q.gate.isClosed() }
