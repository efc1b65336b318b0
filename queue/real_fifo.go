package queue

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/watchmill/watchmill/store"
)

// DefaultBatchSize is the most deltas that [RealFIFO.PopBatch] returns at a time by
// default: enough that a store's lock is taken rarely.
const DefaultBatchSize = 1000

// RealFIFOConfig says how a [RealFIFO] works. Only Key is required.
type RealFIFOConfig[T any] struct {
	// Key returns the key of an object.
	Key store.KeyFunc[T]
	// Known determines what Replace and Resync queue. If it is nil, as usual, they
	// queue one delta each, which the consumer compares with its state. Otherwise
	// Known is the consumer's state, and they queue a delta for each object.
	Known KnownObjects[T]
	// Transform, if any, changes an object before it is queued, for example to drop
	// unused fields. It is called exactly once for each incoming object, but not for
	// objects of Known or in a tombstone.
	Transform func(T) (T, error)
	// OnBadItem, if any, gets objects in a Replace whose Key or Transform fails.
	// They are left out. If Transform fails, the object's known state stays (see
	// Delta.Kept). If Key fails, it is not known which that is: what is known under a
	// key that is not in the list is deleted. If OnBadItem is nil, such an object makes
	// the Replace fail.
	OnBadItem func(object T, err error)
	// BatchSize is the most deltas that PopBatch returns at a time; zero means
	// DefaultBatchSize.
	BatchSize int
	// Limit is the number of queued deltas from which Room waits; zero means that
	// Room never waits. Changes are queued above it too.
	Limit int
}

func (c *RealFIFOConfig[T]) validate() error {
	switch {
	case c.Key == nil:
		return &ConfigError{Field: "RealFIFOConfig.Key", Problem: "is nil; give a function that returns an object's key"}
	case c.BatchSize < 0:
		return &ConfigError{Field: "RealFIFOConfig.BatchSize", Problem: "is negative; give 0 for the default"}
	case c.Limit < 0:
		return &ConfigError{Field: "RealFIFOConfig.Limit", Problem: "is negative; give 0 for none"}
	}
	return nil
}

func (c RealFIFOConfig[T]) withDefaults() RealFIFOConfig[T] {
	c.BatchSize = cmp.Or(c.BatchSize, DefaultBatchSize)
	return c
}

// RealFIFO is a queue of changes in their order, across objects too: a consumer that
// applies them has the states of the source, one after the other. No change is left
// out or merged. Make one with [NewRealFIFO].
//
// Replace queues one DeltaReplacedAll, or, with RealFIFOConfig.Known, first a deletion
// of every other object that is queued or known, then each object of the list. Resync
// queues one DeltaSyncAll, or, with Known, each known object that is neither queued nor
// being processed.
//
// It is safe for concurrent use. Only Pop, PopBatch and Room block.
type RealFIFO[T any] struct {
	base[T]
	batchSize, limit int
	deltas           ring[realEntry[T]]
	room             sync.Cond // signalled when entries are removed
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
	cfg = cfg.withDefaults()
	q := &RealFIFO[T]{
		base:      base[T]{prepare: preparation[T]{cfg.Key, cfg.Transform, cfg.OnBadItem}, known: cfg.Known},
		batchSize: cfg.BatchSize, limit: cfg.Limit,
	}
	q.init((*realContents[T])(q))
	q.room.L = &q.mu
	return q, nil
}

// Bookmark queues a bookmark: there are no other changes up to revision rev. With
// RealFIFOConfig.Known it does nothing. The error is [ErrClosed].
func (q *RealFIFO[T]) Bookmark(rev store.Revision) error {
	if q.known != nil {
		return nil
	}
	return q.locked(func() { q.contents.put(Delta[T]{Type: DeltaBookmark, Revision: rev}, false) })
}

// Room waits until fewer than RealFIFOConfig.Limit deltas are queued. A producer that
// calls it before each read does not read faster than the consumer processes. The
// errors are ctx's cause and [ErrClosed].
func (q *RealFIFO[T]) Room(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	err := await(ctx, &q.room, func() bool {
		return q.closed || q.limit == 0 || q.deltas.len() < q.limit
	})
	if err == nil && q.closed {
		return ErrClosed
	}
	return err
}

// Close makes all later changes fail. The entries that are queued can still be popped.
func (q *RealFIFO[T]) Close() {
	q.base.Close()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.room.Broadcast()
}

// Pop waits for a delta, removes it and calls process with it; initial is whether it is
// from the first Replace. The error is that of process, its panic as a
// [*usercode.PanicError], ctx's cause if ctx ends first, or [ErrClosed] once the queue is
// closed and empty.
//
// One call processes at a time, and the others wait. process may call the queue,
// except for Pop and PopBatch. If it fails, the delta is not queued again: that would
// put an old state behind a new one.
func (q *RealFIFO[T]) Pop(ctx context.Context, process func(delta Delta[T], initial bool) error) error {
	return q.popUpTo(ctx, 1, func(batch []Delta[T], initial bool) error { return process(batch[0], initial) })
}

// PopBatch is Pop for several deltas at a time: as many as are queued, at most
// RealFIFOConfig.BatchSize, of different objects, and all from the first Replace or
// none. A delta that concerns all objects is a batch of its own. process may keep the
// batch, which is never empty. It blocks and fails as Pop does.
func (q *RealFIFO[T]) PopBatch(ctx context.Context, process func(batch []Delta[T], initial bool) error) error {
	return q.popUpTo(ctx, q.batchSize, process)
}

func (q *RealFIFO[T]) popUpTo(ctx context.Context, limit int, process func([]Delta[T], bool) error) error {
	var batch []Delta[T]
	var initial bool
	return q.pop(ctx, func() int {
		batch, initial = q.takeBatch(limit)
		if q.known != nil {
			q.popped = slices.Clone(batch)
		}
		q.room.Broadcast()
		return len(batch) * count(initial)
	}, func() error { return process(batch, initial) })
}

// takeBatch removes the next batch. The queue must not be empty.
func (q *RealFIFO[T]) takeBatch(limit int) (batch []Delta[T], initial bool) {
	queued := q.deltas.all()
	n := batchLen(queued, limit)
	batch = make([]Delta[T], n)
	for i := range batch {
		batch[i] = queued[i].delta
	}
	initial = queued[0].initial
	q.deltas.drop(n)
	return batch, initial
}

// batchLen returns how many of queued, from the first on, can be processed together.
// queued must not be empty.
func batchLen[T any](queued []realEntry[T], limit int) int {
	if limit == 1 || concernsAll(queued[0].delta.Type) {
		return 1
	}
	keys := make(map[string]struct{}, min(limit, len(queued)))
	for n, entry := range queued {
		_, twice := keys[entry.delta.Key]
		if n == limit || twice || entry.initial != queued[0].initial || concernsAll(entry.delta.Type) {
			return n
		}
		keys[entry.delta.Key] = struct{}{}
	}
	return len(queued)
}

// concernsAll reports whether deltas of the type concern all objects.
func concernsAll(t DeltaType) bool { return t >= DeltaReplacedAll }

// realContents are the contents of a RealFIFO.
type realContents[T any] RealFIFO[T]

func (q *realContents[T]) len() int { return q.deltas.len() }

func (q *realContents[T]) put(d Delta[T], initial bool) {
	q.deltas.push(realEntry[T]{d, initial})
	q.added(initial)
}

func (q *realContents[T]) delete(gone *Deleted[T]) {
	q.put(Delta[T]{Type: DeltaDeleted, Key: gone.Key, Deleted: gone}, false)
}

func (q *realContents[T]) replace(list *listing[T], rev store.Revision, initial bool) {
	if q.known == nil {
		q.put(list.asDelta(rev), initial)
		return
	}
	for _, gone := range q.pending().missing(list, q.known) {
		q.put(Delta[T]{Type: DeltaDeleted, Key: gone.Key, Deleted: gone}, initial)
	}
	for _, o := range list.objects {
		q.put(Delta[T]{Type: DeltaReplaced, Key: o.key, Object: o.object, Revision: rev}, initial)
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

func (q *realContents[T]) resync() {
	if q.known == nil {
		q.put(Delta[T]{Type: DeltaSyncAll}, false)
		return
	}
	for _, d := range q.pending().unchanged(q.known) {
		q.put(d, false)
	}
}

// pending returns the state that the consumer will have.
func (q *realContents[T]) pending() *pendingState[T] {
	p := new(pendingState[T])
	for i := range q.popped {
		p.note(&q.popped[i])
	}
	queued := q.deltas.all()
	for i := range queued {
		p.note(&queued[i].delta)
	}
	return p
}
