package queue

import (
	"context"
	"sync"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// base is what [FIFO], [DeltaFIFO] and [RealFIFO] have in common: user functions
// run before the lock is taken, changes are queued under it, one Pop processes at
// a time but without it, closing, and whether the first Replace has been processed.
// What the queues do differently is in contents.
type base[T any] struct {
	prepare  preparation[T]
	known    KnownObjects[T]
	contents contents[T]

	mu     sync.Mutex
	turn   sync.Cond // signalled when a Pop may go on
	busy   bool      // a Pop is processing
	closed bool
	// popped is what is being processed, if known is set: the consumer knows of
	// it, though known may not show it yet.
	popped []Delta[T]

	populated bool // something was added or replaced
	initial   int  // entries of the first Replace that have not been processed
	synced    chan struct{}
}

// contents is what a queue holds. The caller of its methods has the lock.
type contents[T any] interface {
	// len returns the number of entries, each for one Pop.
	len() int
	// put queues a change of one object. initial says that it is of the first
	// Replace.
	put(d Delta[T], initial bool)
	// delete queues a deletion that the source has reported.
	delete(gone *Deleted[T])
	// replace queues a list. initial is as for put.
	replace(list *listing[T], rev store.Revision, initial bool)
	// resync queues what is known once more.
	resync()
}

func (q *base[T]) init(contents contents[T]) {
	q.contents = contents
	q.turn.L = &q.mu
	q.synced = make(chan struct{})
}

// Add queues that object came to be. The errors are [*store.KeyFuncError],
// [*store.TransformError] and [ErrClosed].
func (q *base[T]) Add(object T) error { return q.change(DeltaAdded, object) }

// Update queues that object changed. The errors are those of Add.
func (q *base[T]) Update(object T) error { return q.change(DeltaUpdated, object) }

func (q *base[T]) change(t DeltaType, object T) error {
	o, err := q.prepare.one(object)
	if err != nil {
		return err
	}
	return q.modify(func() { q.contents.put(Delta[T]{Type: t, Key: o.key, Object: o.object}, false) })
}

// Delete queues that object is gone, this being its last state. The errors are
// those of Add and of DeleteTombstone.
func (q *base[T]) Delete(object T) error {
	o, err := q.prepare.one(object)
	if err != nil {
		return err
	}
	return q.DeleteTombstone(Deleted[T]{Key: o.key, Last: o.object, Known: true})
}

// DeleteTombstone is Delete for an object whose last state may be unknown or
// stale. The tombstone is queued as it is. The errors are [ErrClosed] and a panic
// of Known as a [*usercode.PanicError].
func (q *base[T]) DeleteTombstone(gone Deleted[T]) error {
	return q.modify(func() { q.contents.delete(&gone) })
}

// Replace queues that objects are all that there is, as listed at revision rev.
// The errors are those of Add and of DeleteTombstone; after one the queue is as it
// was.
func (q *base[T]) Replace(objects []T, rev store.Revision) error {
	list, err := q.prepare.all(objects)
	if err != nil {
		return err
	}
	return q.modify(func() { q.contents.replace(&list, rev, !q.isSynced()) })
}

// Resync queues all known objects once more, for a consumer that wants to see them
// from time to time. The errors are those of DeleteTombstone.
func (q *base[T]) Resync() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return ErrClosed
	}
	return usercode.Call("KnownObjects", "", q.contents.resync)
}

// modify makes a change under the lock, unless the queue is closed.
func (q *base[T]) modify(change func()) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return ErrClosed
	}
	if err := usercode.Call("KnownObjects", "", change); err != nil {
		return err
	}
	q.populated = true
	q.checkSynced()
	return nil
}

// pop waits for an entry, has take take it out under the lock, and processes it
// without the lock. take returns how many initial entries it took.
func (q *base[T]) pop(ctx context.Context, take func() (initial int), process func() error) (err error) {
	if err := q.enter(ctx); err != nil {
		return err
	}
	initial := take()
	q.mu.Unlock()
	defer q.leave(initial)
	if panicked := usercode.Call("Pop's process function", "", func() { err = process() }); panicked != nil {
		return panicked
	}
	return err
}

// enter waits until it is the caller's turn to process an entry. If it returns
// nil, the caller has the lock and must call leave without it.
func (q *base[T]) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	q.mu.Lock()
	err := await(ctx, &q.turn, func() bool {
		if q.contents.len() == 0 {
			return q.closed
		}
		return !q.busy
	})
	if err == nil && q.contents.len() == 0 {
		err = ErrClosed
	}
	if err != nil {
		q.mu.Unlock()
		return err
	}
	q.busy = true
	return nil
}

// leave ends what enter began. initial is how many of the processed entries were
// initial.
func (q *base[T]) leave(initial int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.popped = nil
	q.busy = false
	q.initial -= initial
	q.checkSynced()
	if q.closed && q.contents.len() == 0 {
		q.turn.Broadcast() // that was the last entry: no Pop needs to wait any more
		return
	}
	q.turn.Signal()
}

// added lets a Pop go on with an entry that has been added.
func (q *base[T]) added(initial bool) {
	q.initial += count(initial)
	q.turn.Signal()
}

// count returns 1 for an initial entry, otherwise 0.
func count(initial bool) int {
	if initial {
		return 1
	}
	return 0
}

// isSynced reports whether the first Replace, if any, has been processed.
func (q *base[T]) isSynced() bool { return q.populated && q.initial == 0 }

func (q *base[T]) checkSynced() {
	if !q.isSynced() {
		return
	}
	select {
	case <-q.synced:
	default:
		close(q.synced)
	}
}

// KeyOf returns the key of object. The error is a [*store.KeyFuncError]. The key
// of a [Delta], of [Deltas] or of a [Deleted] is in it.
func (q *base[T]) KeyOf(object T) (string, error) { return q.prepare.keyOf(object) }

// Len returns the number of entries that are queued, each for one Pop.
func (q *base[T]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.contents.len()
}

// HasSynced reports whether all that the first Replace queued, deletions too, has
// been processed. A queue whose first change is not a Replace has synced at once.
func (q *base[T]) HasSynced() bool {
	select {
	case <-q.synced:
		return true
	default:
		return false
	}
}

// Done returns a channel that is closed when the queue has synced.
func (q *base[T]) Done() <-chan struct{} { return q.synced }

// Close refuses what comes from now on. What is queued can still be popped.
func (q *base[T]) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.turn.Broadcast()
}

// IsClosed reports whether the queue was closed.
func (q *base[T]) IsClosed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}

// await waits on cond, whose lock the caller has, until ready or ctx is done. If
// both are, it returns nil: the Signal that made it ready may have woken no other.
func await(ctx context.Context, cond *sync.Cond, ready func() bool) error {
	if ready() {
		return nil
	}
	stop := context.AfterFunc(ctx, func() {
		cond.L.Lock()
		defer cond.L.Unlock()
		cond.Broadcast()
	})
	defer stop()
	for !ready() {
		if err := ctx.Err(); err != nil {
			return err
		}
		cond.Wait()
	}
	return nil
}
