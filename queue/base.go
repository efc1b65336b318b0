package queue

import (
	"context"
	"sync"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// base is the common part of [FIFO], [DeltaFIFO] and [RealFIFO]: it runs the user's
// functions before it takes the lock, lets one Pop at a time process an entry without
// the lock, closes, and reports when the first Replace has been processed. contents is
// the part that differs.
type base[T any] struct {
	prepare  preparation[T]
	known    KnownObjects[T]
	contents contents[T]

	mu     sync.Mutex
	turn   sync.Cond // signalled when a Pop may go on
	busy   bool      // a Pop is processing
	closed bool
	// popped is the entry that is being processed, if known is set: known may not
	// have it yet.
	popped []Delta[T]

	populated bool // there was a change
	initial   int  // entries of the first Replace that have not been processed
	synced    chan struct{}
}

// contents are the entries of a queue. The caller of the methods has the lock.
type contents[T any] interface {
	// len returns the number of entries, each for one Pop.
	len() int
	// put queues a change of one object. initial: it is of the first Replace.
	put(d Delta[T], initial bool)
	// delete queues a deletion that the source has reported.
	delete(gone *Deleted[T])
	// replace queues a list. initial: it is the first change.
	replace(list *listing[T], rev store.Revision, initial bool)
	// resync queues the known objects once more.
	resync()
}

func (q *base[T]) init(contents contents[T]) {
	q.contents = contents
	q.turn.L = &q.mu
	q.synced = make(chan struct{})
}

// Add queues a new object. The errors are [*store.KeyFuncError],
// [*store.TransformError] and [ErrClosed].
func (q *base[T]) Add(object T) error { return q.change(DeltaAdded, object) }

// Update queues a changed object. The errors are those of Add.
func (q *base[T]) Update(object T) error { return q.change(DeltaUpdated, object) }

func (q *base[T]) change(t DeltaType, object T) error {
	o, err := q.prepare.one(object)
	if err != nil {
		return err
	}
	return q.modify(func() { q.contents.put(Delta[T]{Type: t, Key: o.key, Object: o.object}, false) })
}

// Delete queues the deletion of object, which is its last state. The errors are
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

// Replace queues a list, of revision rev, that has all objects. The errors are those
// of Add and of DeleteTombstone; after an error the queue is unchanged.
func (q *base[T]) Replace(objects []T, rev store.Revision) error {
	list, err := q.prepare.all(objects)
	if err != nil {
		return err
	}
	return q.modify(func() { q.contents.replace(&list, rev, !q.populated) })
}

// Resync queues all known objects once more, for a consumer that processes them
// periodically. The errors are those of DeleteTombstone.
func (q *base[T]) Resync() error { return q.locked(q.contents.resync) }

// modify makes a change, after which a Replace is not the first change.
func (q *base[T]) modify(change func()) error {
	return q.locked(func() {
		change()
		q.populated = true
		q.checkSynced()
	})
}

// locked calls f under the lock, unless the queue is closed.
func (q *base[T]) locked(f func()) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return ErrClosed
	}
	return usercode.Call("KnownObjects", "", f)
}

// pop waits for an entry, calls take under the lock to remove it, and process without
// the lock. take returns how many initial entries it removed.
func (q *base[T]) pop(ctx context.Context, take func() (initial int), process func() error) (err error) {
	if err := q.enter(ctx); err != nil {
		return err
	}
	initial := take()
	if q.closed && q.contents.len() == 0 {
		q.turn.Broadcast() // no other Pop needs to wait any more
	}
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
	if err := context.Cause(ctx); err != nil {
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

// leave ends the turn that enter began. initial is how many of the processed entries
// were initial.
func (q *base[T]) leave(initial int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.popped = nil
	q.busy = false
	q.initial -= initial
	q.checkSynced()
	q.turn.Signal()
}

// added counts a new entry and wakes a Pop.
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

// checkSynced ends the waits for the first Replace, if that, if any, has been processed.
func (q *base[T]) checkSynced() {
	if !q.populated || q.initial > 0 {
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

// HasSynced reports whether all entries of the first Replace, deletions too, have
// been processed; entries of later ones are not waited for, but a FIFO whose first list
// was replaced waits for the list that it has instead. A queue whose first change is not a
// Replace has synced at once. Resync and RealFIFO.Bookmark are not changes.
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

// Close makes all later changes fail. The entries that are queued can still be popped.
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

// await waits on cond until ready or ctx is done. The caller has cond's lock. If both
// are, it returns nil, since the Signal may have woken only this call.
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
		if err := context.Cause(ctx); err != nil {
			return err
		}
		cond.Wait()
	}
	return nil
}

// preparation calls the user's functions exactly once for each incoming object, before
// any lock is taken.
type preparation[T any] struct {
	key       store.KeyFunc[T]
	transform func(T) (T, error)
	onBad     func(T, error)
}

// keyed is an object with its key.
type keyed[T any] struct {
	key    string
	object T
}

// listing is a list of prepared objects.
type listing[T any] struct {
	objects []keyed[T]
	// kept are the keys of listed objects for which Transform failed. Those for which Key
	// failed have none.
	kept []string
}

// keys returns the set of keys that are listed.
func (l *listing[T]) keys() map[string]bool {
	listed := make(map[string]bool, len(l.objects))
	for _, o := range l.objects {
		listed[o.key] = true
	}
	for _, key := range l.kept {
		listed[key] = true
	}
	return listed
}

func (p *preparation[T]) keyOf(object T) (key string, err error) {
	if panicked := usercode.Call("Key", "", func() { key, err = p.key(object) }); panicked != nil {
		err = panicked
	}
	if err != nil {
		return "", &store.KeyFuncError[T]{Item: object, Err: err}
	}
	return key, nil
}

// one prepares an object. The error is a [*store.KeyFuncError], or, with the key, a
// [*store.TransformError].
func (p *preparation[T]) one(object T) (keyed[T], error) {
	key, err := p.keyOf(object)
	if err != nil || p.transform == nil {
		return keyed[T]{key, object}, err
	}
	out := keyed[T]{key: key}
	if panicked := usercode.Call("Transform", key, func() { out.object, err = p.transform(object) }); panicked != nil {
		err = panicked
	}
	if err != nil {
		return out, &store.TransformError{Key: key, Err: err}
	}
	return out, nil
}

// all prepares a list. If a function fails for an object, so does the list, unless
// onBad is set.
func (p *preparation[T]) all(objects []T) (listing[T], error) {
	list := listing[T]{objects: make([]keyed[T], 0, len(objects))}
	for _, object := range objects {
		one, err := p.one(object)
		switch {
		case err == nil:
			list.objects = append(list.objects, one)
		case p.onBad == nil:
			return listing[T]{}, err
		default:
			if panicked := usercode.Call("OnBadItem", one.key, func() { p.onBad(object, err) }); panicked != nil {
				return listing[T]{}, panicked
			}
			if _, keyless := err.(*store.KeyFuncError[T]); !keyless {
				list.kept = append(list.kept, one.key)
			}
		}
	}
	return list, nil
}
