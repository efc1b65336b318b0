package queue

import (
	"cmp"
	"context"

	"github.com/watchmill/watchmill/store"
)

// DefaultMaxDeltas is how many deltas a [DeltaFIFO] keeps for one object by default:
// more than a consumer that keeps up has to expect.
const DefaultMaxDeltas = 100

// DeltaFIFOConfig says how a [DeltaFIFO] works. Only Key is required.
type DeltaFIFOConfig[T any] struct {
	// Key returns the key of an object.
	Key store.KeyFunc[T]
	// Known, if any, is the consumer's state. Without it, only deletions of objects
	// that are queued are queued, and Resync does nothing.
	Known KnownObjects[T]
	// Transform, if any, changes an object before it is queued, for example to drop
	// unused fields. It is called exactly once for each incoming object, but not for
	// objects of Known or in a tombstone.
	Transform func(T) (T, error)
	// OnBadItem, if any, gets objects in a Replace whose Key or Transform fails.
	// They are left out. If Transform fails, the object's known state stays. If Key
	// fails, it is not known which that is: what is known under a key that is not in
	// the list is deleted. If OnBadItem is nil, such an object makes the Replace fail.
	OnBadItem func(object T, err error)
	// ReplaceAsSync makes Replace queue objects as DeltaSync instead of
	// DeltaReplaced.
	ReplaceAsSync bool
	// MaxDeltas is how many deltas are kept for one object, at least 2; zero means
	// DefaultMaxDeltas. Above it, the oldest are dropped, except for deletions: an
	// object's deltas may then begin with a DeltaUpdated even if it is new to the
	// consumer.
	MaxDeltas int
}

func (c *DeltaFIFOConfig[T]) validate() error {
	switch {
	case c.Key == nil:
		return &ConfigError{Field: "DeltaFIFOConfig.Key", Problem: "is nil; give a function that returns an object's key"}
	case c.MaxDeltas < 2 && c.MaxDeltas != 0:
		return &ConfigError{Field: "DeltaFIFOConfig.MaxDeltas", Problem: "is less than 2; give 0 for the default"}
	}
	return nil
}

func (c DeltaFIFOConfig[T]) withDefaults() DeltaFIFOConfig[T] {
	c.MaxDeltas = cmp.Or(c.MaxDeltas, DefaultMaxDeltas)
	return c
}

// DeltaFIFO is a queue of changes, collected by object: an object is queued once, at
// the position of its first change, with all its changes since. The order is kept for
// each object, not across objects. Make one with [NewDeltaFIFO].
//
// Delete does nothing if the object is neither queued, nor being processed, nor
// known. Replace queues each object of the list, then a deletion of every other object
// that is queued or known. Resync queues every known object that is neither queued nor
// being processed.
//
// It is safe for concurrent use. Only Pop blocks.
type DeltaFIFO[T any] struct {
	base[T]
	replaceType DeltaType
	maxDeltas   int
	entries     orderedMap[deltaEntry[T]]
}

type deltaEntry[T any] struct {
	deltas  Deltas[T]
	initial bool
}

// NewDeltaFIFO returns an empty queue. The error is a [*ConfigError].
func NewDeltaFIFO[T any](cfg DeltaFIFOConfig[T]) (*DeltaFIFO[T], error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	q := &DeltaFIFO[T]{
		base:        base[T]{prepare: preparation[T]{cfg.Key, cfg.Transform, cfg.OnBadItem}, known: cfg.Known},
		replaceType: DeltaReplaced, maxDeltas: cfg.MaxDeltas,
	}
	if cfg.ReplaceAsSync {
		q.replaceType = DeltaSync
	}
	q.init((*deltaContents[T])(q))
	return q, nil
}

// Pop waits for an object, removes it and calls process with its deltas, which process
// may keep; initial is whether the object was in the first Replace. The error is that
// of process, its panic as a [*usercode.PanicError], ctx's cause if ctx ends first, or
// [ErrClosed] once the queue is closed and empty.
//
// One call processes at a time, and the others wait. process may call the queue,
// except for Pop. If it fails, the deltas are not queued again: that would put an old
// state behind a new one.
func (q *DeltaFIFO[T]) Pop(ctx context.Context, process func(deltas Deltas[T], initial bool) error) error {
	var entry deltaEntry[T]
	return q.pop(ctx, func() int {
		entry = q.entries.pop()
		if q.known != nil {
			q.popped = []Delta[T]{*entry.deltas.Newest()}
		}
		return count(entry.initial)
	}, func() error { return process(entry.deltas, entry.initial) })
}

// deltaContents are the contents of a DeltaFIFO.
type deltaContents[T any] DeltaFIFO[T]

func (q *deltaContents[T]) len() int { return q.entries.len() }

func (q *deltaContents[T]) put(d Delta[T], initial bool) {
	entry := q.entries.at(d.Key)
	if entry == nil {
		entry = q.entries.push(d.Key)
		q.added(false)
	}
	entry.deltas = append(entry.deltas, d).compacted(q.maxDeltas)
	if initial && !entry.initial {
		entry.initial = true
		q.initial++
	}
}

func (q *deltaContents[T]) delete(gone *Deleted[T]) {
	if q.exists(gone.Key) {
		q.put(Delta[T]{Type: DeltaDeleted, Key: gone.Key, Deleted: gone}, false)
	}
}

// exists reports whether the consumer has the object, or will when it has processed
// all entries.
func (q *deltaContents[T]) exists(key string) bool {
	if q.entries.at(key) != nil {
		return true
	}
	if q.known == nil {
		return false
	}
	if len(q.popped) > 0 && q.popped[0].Key == key {
		return true
	}
	_, known := q.known.GetByKey(key)
	return known
}

func (q *deltaContents[T]) replace(list *listing[T], rev store.Revision, initial bool) {
	gone := q.pending().missing(list, q.known)
	for _, o := range list.objects {
		q.put(Delta[T]{Type: q.replaceType, Key: o.key, Object: o.object, Revision: rev}, initial)
	}
	for _, d := range gone {
		q.put(Delta[T]{Type: DeltaDeleted, Key: d.Key, Deleted: d}, initial)
	}
}

func (q *deltaContents[T]) resync() {
	for _, d := range q.pending().unchanged(q.known) {
		q.put(d, false)
	}
}

// pending returns the state that the consumer will have.
func (q *deltaContents[T]) pending() *pendingState[T] {
	p := new(pendingState[T])
	for i := range q.popped {
		p.note(&q.popped[i])
	}
	for _, entry := range q.entries.all() {
		p.note(entry.deltas.Newest())
	}
	return p
}
