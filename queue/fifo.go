package queue

import (
	"context"

	"github.com/watchmill/watchmill/store"
)

// FIFO is a queue of objects in which every key is at most once, with its
// newest object, at the position where it came in. Make one with [NewFIFO].
//
// It is safe for concurrent use. Only Pop blocks.
type FIFO[T any] struct {
	gate    gate
	in      intake[T]
	entries linked[fifoEntry[T]]
}

type fifoEntry[T any] struct {
	object  T
	initial bool
}

// NewFIFO returns an empty queue of objects with the given keys. It fails with
// a [*ConfigError] if there is no key function.
func NewFIFO[T any](key store.KeyFunc[T]) (*FIFO[T], error) {
	if key == nil {
		return nil, &ConfigError{"key", "it is nil: give a function that returns an object's key"}
	}
	q := &FIFO[T]{in: intake[T]{key: key}}
	q.gate.init(func() bool { return q.entries.len() > 0 })
	return q, nil
}

// Add puts object into the queue: in place of the one with its key, or last. The
// errors are [*store.KeyFuncError] and [ErrClosed].
func (q *FIFO[T]) Add(object T) error {
	key, err := q.in.keyOf(object)
	if err != nil {
		return err
	}
	if err := q.gate.open(); err != nil {
		return err
	}
	defer q.gate.mu.Unlock()
	q.put(key, object)
	q.gate.touched()
	return nil
}

// Update is the same as Add.
func (q *FIFO[T]) Update(object T) error { return q.Add(object) }

// Delete takes the object with object's key out of the queue, if it is there.
// If it is added again it goes last. The errors are [*store.KeyFuncError] and
// [ErrClosed].
func (q *FIFO[T]) Delete(object T) error {
	key, err := q.in.keyOf(object)
	if err != nil {
		return err
	}
	if err := q.gate.open(); err != nil {
		return err
	}
	defer q.gate.mu.Unlock()
	if entry, was := q.entries.remove(key); was && entry.initial {
		q.gate.initial--
	}
	q.gate.touched()
	return nil
}

// Replace makes objects the only contents, in their order; of those with the
// same key the last counts, at the position of the first. rev, the revision of
// the list, does not matter to this queue. The errors are [*store.KeyFuncError],
// which leaves everything as it was, and [ErrClosed].
func (q *FIFO[T]) Replace(objects []T, rev store.Revision) error {
	list, err := q.in.all(objects)
	if err != nil {
		return err
	}
	if err := q.gate.open(); err != nil {
		return err
	}
	defer q.gate.mu.Unlock()
	initial := !q.gate.isSynced()
	for q.entries.len() > 0 {
		if q.entries.pop().initial {
			q.gate.initial--
		}
	}
	for _, o := range list.objects {
		entry := q.put(o.key, o.object)
		if initial && !entry.initial {
			entry.initial = true
			q.gate.initial++
		}
	}
	q.gate.touched()
	return nil
}

// Resync does nothing: an object is queued as long as it is not popped.
func (q *FIFO[T]) Resync() error { return nil }

// put stores object under key. The caller has the lock.
func (q *FIFO[T]) put(key string, object T) *fifoEntry[T] {
	entry := q.entries.at(key)
	if entry == nil {
		entry = q.entries.push(key)
		q.gate.turn.Signal()
	}
	entry.object = object
	return entry
}

// Pop waits for an object, takes it out and calls process with it; initial tells
// whether it was in the first Replace. It returns what process returns, its
// panic as a [*store.PanicError], ctx's error if ctx ends first, and [ErrClosed]
// once the queue is closed and empty.
//
// One call processes at a time, and the others wait. process may use the queue,
// except for Pop. An object whose processing failed is not queued again.
func (q *FIFO[T]) Pop(ctx context.Context, process func(object T, initial bool) error) (err error) {
	if err := q.gate.enter(ctx); err != nil {
		return err
	}
	entry := q.entries.pop()
	q.gate.mu.Unlock()
	defer func() {
		q.gate.mu.Lock()
		defer q.gate.mu.Unlock()
		q.gate.leave(count(entry.initial))
	}()
	defer recovered(&err)
	return process(entry.object, entry.initial)
}

// Len returns the number of objects that are queued.
func (q *FIFO[T]) Len() int {
	q.gate.mu.Lock()
	defer q.gate.mu.Unlock()
	return q.entries.len()
}

// HasSynced reports whether everything in the first Replace has been processed
// or deleted. A queue whose first change is not a Replace has synced at once.
func (q *FIFO[T]) HasSynced() bool { return q.gate.hasSynced() }

// Done returns a channel that is closed when the queue has synced.
func (q *FIFO[T]) Done() <-chan struct{} { return q.gate.synced }

// Close refuses what comes from now on. What is queued can still be popped.
func (q *FIFO[T]) Close() { q.gate.close() }

// IsClosed reports whether the queue was closed.
func (q *FIFO[T]) IsClosed() bool { return q.gate.isClosed() }

// count is how many initial entries one entry is.
func count(initial bool) int {
	if initial {
		return 1
	}
	return 0
}
