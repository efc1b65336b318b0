package queue

import (
	"context"

	"github.com/watchmill/watchmill/store"
)

// FIFO is a queue of objects that has every key at most once, with its newest object,
// at the position at which the key was added. Make one with [NewFIFO].
//
// Add and Update are the same: the object replaces the one with its key, or is added
// at the end. Delete removes the object with that key; if it is added again it goes to
// the end. Replace makes the list the only contents, in its order; of objects with the
// same key the last counts, at the position of the first, and the revision does not
// matter. Resync does nothing: an object is queued until it is popped.
//
// It is safe for concurrent use. Only Pop blocks.
type FIFO[T any] struct {
	base[T]
	entries orderedMap[fifoEntry[T]]
}

type fifoEntry[T any] struct {
	object  T
	initial bool
}

// NewFIFO returns an empty queue of objects with the given keys. It fails with
// a [*ConfigError] if there is no key function.
func NewFIFO[T any](key store.KeyFunc[T]) (*FIFO[T], error) {
	if key == nil {
		return nil, &ConfigError{Field: "key", Problem: "is nil; give a function that returns an object's key"}
	}
	q := &FIFO[T]{base: base[T]{prepare: preparation[T]{key: key}}}
	q.init((*fifoContents[T])(q))
	return q, nil
}

// Pop waits for an object, removes it and calls process with it; initial is whether it
// was in the first Replace, or in one that took its place before all of it was
// processed. The error is that of process, its panic as a [*usercode.PanicError],
// ctx's cause if ctx ends first, or [ErrClosed] once the queue is closed and empty.
//
// One call processes at a time, and the others wait. process may call the queue,
// except for Pop. If it fails, the object is not queued again.
func (q *FIFO[T]) Pop(ctx context.Context, process func(object T, initial bool) error) error {
	var entry fifoEntry[T]
	return q.pop(ctx, func() int {
		entry = q.entries.pop()
		return count(entry.initial)
	}, func() error { return process(entry.object, entry.initial) })
}

// fifoContents are the contents of a FIFO.
type fifoContents[T any] FIFO[T]

func (q *fifoContents[T]) len() int { return q.entries.len() }

func (q *fifoContents[T]) put(d Delta[T], initial bool) {
	entry := q.entries.at(d.Key)
	if entry == nil {
		entry = q.entries.push(d.Key)
		q.added(initial)
		entry.initial = initial
	}
	entry.object = d.Object
}

func (q *fifoContents[T]) delete(gone *Deleted[T]) {
	if entry, was := q.entries.remove(gone.Key); was {
		q.initial -= count(entry.initial)
	}
}

func (q *fifoContents[T]) replace(list *listing[T], _ store.Revision, initial bool) {
	initial = initial || q.initial > 0 // it takes the place of the first list
	for q.entries.len() > 0 {
		q.initial -= count(q.entries.pop().initial)
	}
	for _, o := range list.objects {
		q.put(Delta[T]{Key: o.key, Object: o.object}, initial)
	}
}

func (q *fifoContents[T]) resync() {}
