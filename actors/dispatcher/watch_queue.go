package dispatcher

import (
	"github.com/tidwall/btree"

	"github.com/watchmill/watchmill/actors/watcher"
)

// watchQueue is a priority queue of watches: each has a key, such as a time or a
// revision, and the lowest comes first. Watches with equal keys are in the order of
// adding. It belongs to one goroutine.
type watchQueue[K any] struct {
	inOrder *btree.BTreeG[*queuedWatch[K]]
	entries map[*watcher.Member]*queuedWatch[K]
	adds    uint64
}

// queuedWatch is a watch's entry.
type queuedWatch[K any] struct {
	watch *watcher.Member
	key   K
	// order is the number of the add that made it.
	order uint64
}

// newWatchQueue makes an empty queue whose keys are ordered by less.
func newWatchQueue[K any](less func(a, b K) bool) *watchQueue[K] {
	earlier := func(a, b *queuedWatch[K]) bool {
		return less(a.key, b.key) || !less(b.key, a.key) && a.order < b.order
	}
	return &watchQueue[K]{
		inOrder: btree.NewBTreeGOptions(earlier, btree.Options{NoLocks: true}),
		entries: make(map[*watcher.Member]*queuedWatch[K]),
	}
}

// add adds a watch that is not in the queue.
func (q *watchQueue[K]) add(w *watcher.Member, key K) {
	q.adds++
	e := &queuedWatch[K]{watch: w, key: key, order: q.adds}
	q.entries[w] = e
	q.inOrder.Set(e)
}

// remove removes a watch, if present.
func (q *watchQueue[K]) remove(w *watcher.Member) {
	if e := q.entries[w]; e != nil {
		delete(q.entries, w)
		q.inOrder.Delete(e)
	}
}

// first returns the watch with the lowest key; ok is false if there is none.
func (q *watchQueue[K]) first() (w *watcher.Member, key K, ok bool) {
	e, ok := q.inOrder.Min()
	if !ok {
		return nil, key, false
	}
	return e.watch, e.key, true
}

// key returns the key of a watch, zero for one that is not in the queue.
func (q *watchQueue[K]) key(w *watcher.Member) (key K) {
	if e := q.entries[w]; e != nil {
		key = e.key
	}
	return key
}

func (q *watchQueue[K]) len() int { return len(q.entries) }
