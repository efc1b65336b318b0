package queue

import (
	"context"
	"sync"

	"github.com/watchmill/watchmill/store"
)

// DefaultBatchSize is the most deltas that [RealFIFO.PopBatch] gives at a time:
// enough that a store's lock is taken rarely.
const DefaultBatchSize = 1000

// RealFIFOConfig says how a [RealFIFO] works. Only Key is required.
type RealFIFOConfig[T any] struct {
	// Key returns the key of an object.
	Key store.KeyFunc[T]
	// Known decides how Replace and Resync are told. Nil, the usual, means as
	// one delta each, which the consumer compares with what it knows. Otherwise
	// Known is what the consumer knows, and they are told object by object.
	Known KnownObjects[T]
	// Transform, if any, changes an object before it is queued, say to drop
	// what nobody reads. It is called exactly once for each object that comes
	// in, and not for what comes from Known or in a tombstone.
	Transform func(T) (T, error)
	// OnBadItem, if any, is told of objects in a Replace whose Key or Transform
	// fails. They are left out and the rest is replaced; what is known of them
	// stays (see Delta.Kept). Nil means that such an object fails the Replace.
	OnBadItem func(object T, err error)
	// BatchSize is the most deltas that PopBatch gives at a time; zero means
	// DefaultBatchSize.
	BatchSize int
	// Limit is the number of queued deltas from which Room waits; zero means
	// that there is always room. It refuses nothing.
	Limit int
}

func (c *RealFIFOConfig[T]) validate() error {
	switch {
	case c.Key == nil:
		return &ConfigError{"RealFIFOConfig.Key", "it is nil: give a function that returns an object's key"}
	case c.BatchSize < 0:
		return &ConfigError{"RealFIFOConfig.BatchSize", "it is negative: give 0 for the default"}
	case c.Limit < 0:
		return &ConfigError{"RealFIFOConfig.Limit", "it is negative: give 0 for none"}
	}
	return nil
}

// RealFIFO is a queue of what happened, in the order in which it happened,
// across objects too: a consumer that applies it passes through the states that
// the source was in. Nothing is left out or merged. Make one with
// [NewRealFIFO].
//
// It is safe for concurrent use. Only Pop, PopBatch and Room block.
type RealFIFO[T any] struct {
	gate  gate
	in    intake[T]
	cfg   RealFIFOConfig[T]
	queue line[realEntry[T]]
	// popped is what is being processed: the consumer knows of it, though Known
	// may not show it yet.
	popped []Delta[T]
	room   sync.Cond // told when there is less in the queue
}

type realEntry[T any] struct {
	delta   Delta[T]
	initial bool
}

// NewRealFIFO returns an empty queue. The error is a [*ConfigError].
func NewRealFIFO[T any](cfg RealFIFOConfig[T]) (*RealFIFO[T], error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if cfg.BatchSize == 0 {
		cfg.BatchSize = DefaultBatchSize
	}
	q := &RealFIFO[T]{in: intake[T]{cfg.Key, cfg.Transform, cfg.OnBadItem}, cfg: cfg}
	q.gate.init(func() bool { return q.queue.len() > 0 })
	q.room.L = &q.gate.mu
	return q, nil
}

// Add queues that object came to be. The errors are [*store.KeyFuncError],
// [*store.TransformError] and [ErrClosed].
func (q *RealFIFO[T]) Add(object T) error { return q.take(DeltaAdded, object) }

// Update queues that object changed. The errors are those of Add.
func (q *RealFIFO[T]) Update(object T) error { return q.take(DeltaUpdated, object) }

// Delete queues that object is gone, this being its last state, whether or not
// anybody ever heard of it. The errors are those of Add.
func (q *RealFIFO[T]) Delete(object T) error {
	o, err := q.in.one(object)
	if err != nil {
		return err
	}
	return q.DeleteTombstone(Deleted[T]{Key: o.key, Last: o.object, Known: true})
}

// DeleteTombstone is Delete for an object whose last state may be unknown or
// stale. The tombstone is taken as it is. The error is [ErrClosed].
func (q *RealFIFO[T]) DeleteTombstone(gone Deleted[T]) error {
	return q.append(Delta[T]{Type: DeltaDeleted, Key: gone.Key, Deleted: &gone})
}

// Bookmark queues that nothing else happened up to revision rev. With
// RealFIFOConfig.Known it does nothing. The error is [ErrClosed].
func (q *RealFIFO[T]) Bookmark(rev store.Revision) error {
	if q.cfg.Known != nil {
		return nil
	}
	return q.append(Delta[T]{Type: DeltaBookmark, Revision: rev})
}

func (q *RealFIFO[T]) take(t DeltaType, object T) error {
	o, err := q.in.one(object)
	if err != nil {
		return err
	}
	return q.append(Delta[T]{Type: t, Key: o.key, Object: o.object})
}

func (q *RealFIFO[T]) append(d Delta[T]) error {
	if err := q.gate.open(); err != nil {
		return err
	}
	defer q.gate.mu.Unlock()
	q.enqueue(d, false)
	q.gate.touched()
	return nil
}

// enqueue puts d last. The caller has the lock.
func (q *RealFIFO[T]) enqueue(d Delta[T], initial bool) {
	q.queue.push(realEntry[T]{d, initial})
	q.gate.initial += count(initial)
	q.gate.turn.Signal()
}

// Replace queues that objects are all that there is, as listed at revision rev:
// as one DeltaReplacedAll, or, with RealFIFOConfig.Known, first a deletion of
// all else that is queued or known, then each object. The errors are those of
// Add and the panics of Known as [*store.PanicError], and leave everything as it
// was.
func (q *RealFIFO[T]) Replace(objects []T, rev store.Revision) (err error) {
	list, err := q.in.all(objects)
	if err != nil {
		return err
	}
	if err := q.gate.open(); err != nil {
		return err
	}
	defer q.gate.mu.Unlock()
	defer recovered(&err)
	initial := !q.gate.isSynced()
	if q.cfg.Known == nil {
		q.enqueue(list.asDelta(rev), initial)
	} else {
		q.replaceEach(&list, rev, initial)
	}
	q.gate.touched()
	return nil
}

func (q *RealFIFO[T]) replaceEach(list *listing[T], rev store.Revision, initial bool) {
	for _, gone := range missing(list, q.pending(), q.cfg.Known) {
		q.enqueue(Delta[T]{Type: DeltaDeleted, Key: gone.Key, Deleted: gone}, initial)
	}
	for _, o := range list.objects {
		q.enqueue(Delta[T]{Type: DeltaReplaced, Key: o.key, Object: o.object, Revision: rev}, initial)
	}
}

// asDelta returns the list as one delta.
func (l *listing[T]) asDelta(rev store.Revision) Delta[T] {
	d := Delta[T]{Type: DeltaReplacedAll, Objects: make([]T, len(l.objects)), Kept: l.kept, Revision: rev}
	for i, o := range l.objects {
		d.Objects[i] = o.object
	}
	return d
}

// Resync tells every object again: as one DeltaSyncAll, or, with
// RealFIFOConfig.Known, each known object of which nothing is queued or being
// processed. The errors are [ErrClosed] and the panics of Known as
// [*store.PanicError].
func (q *RealFIFO[T]) Resync() (err error) {
	if err := q.gate.open(); err != nil {
		return err
	}
	defer q.gate.mu.Unlock()
	defer recovered(&err)
	if q.cfg.Known == nil {
		q.enqueue(Delta[T]{Type: DeltaSyncAll}, false)
		return nil
	}
	for _, o := range quiet(q.pending(), q.cfg.Known) {
		q.enqueue(Delta[T]{Type: DeltaSync, Key: o.key, Object: o.object}, false)
	}
	return nil
}

// pending gathers what the consumer will know. The caller has the lock.
func (q *RealFIFO[T]) pending() *pending[T] {
	p := new(pending[T])
	for i := range q.popped {
		note(p, &q.popped[i])
	}
	waiting := q.queue.waiting()
	for i := range waiting {
		note(p, &waiting[i].delta)
	}
	return p
}

// KeyOf returns the key of object. The error is a [*store.KeyFuncError]. The key
// of a [Delta] or of a [Deleted] is in it.
func (q *RealFIFO[T]) KeyOf(object T) (string, error) { return q.in.keyOf(object) }

// Len returns the number of deltas that are queued.
func (q *RealFIFO[T]) Len() int {
	q.gate.mu.Lock()
	defer q.gate.mu.Unlock()
	return q.queue.len()
}

// Room waits until fewer than RealFIFOConfig.Limit deltas are queued. A producer
// that calls it before it reads on passes a slow consumer's pace to its source.
// The errors are ctx's and [ErrClosed].
func (q *RealFIFO[T]) Room(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	q.gate.mu.Lock()
	defer q.gate.mu.Unlock()
	err := await(ctx, &q.room, func() bool {
		return q.gate.closed || q.cfg.Limit == 0 || q.queue.len() < q.cfg.Limit
	})
	if err == nil && q.gate.closed {
		return ErrClosed
	}
	return err
}

// HasSynced reports whether all that the first Replace queued has been
// processed. A queue whose first change is not a Replace has synced at once.
func (q *RealFIFO[T]) HasSynced() bool { return q.gate.hasSynced() }

// Done returns a channel that is closed when the queue has synced.
func (q *RealFIFO[T]) Done() <-chan struct{} { return q.gate.synced }

// Close refuses what comes from now on. What is queued can still be popped.
func (q *RealFIFO[T]) Close() {
	q.gate.close()
	q.gate.mu.Lock()
	defer q.gate.mu.Unlock()
	q.room.Broadcast()
}

// IsClosed reports whether the queue was closed.
func (q *RealFIFO[T]) IsClosed() bool { return q.gate.isClosed() }
