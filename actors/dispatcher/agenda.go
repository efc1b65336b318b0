package dispatcher

import (
	"github.com/tidwall/btree"

	"github.com/watchmill/watchmill/actors/watcher"
)

// agenda is a set of watches, each with a key at which it is due, such as a time
// or a revision. Watches with equal keys are in the order of adding. It belongs
// to one goroutine.
type agenda[K any] struct {
	queue *btree.BTreeG[*appointment[K]]
	of    map[*watcher.Member]*appointment[K]
	adds  uint64
}

// appointment is a watch's entry.
type appointment[K any] struct {
	watch *watcher.Member
	key   K
	// order is the number of the add that made it.
	order uint64
}

// newAgenda makes an empty agenda whose keys are ordered by less.
func newAgenda[K any](less func(a, b K) bool) *agenda[K] {
	earlier := func(a, b *appointment[K]) bool {
		return less(a.key, b.key) || !less(b.key, a.key) && a.order < b.order
	}
	return &agenda[K]{
		queue: btree.NewBTreeGOptions(earlier, btree.Options{NoLocks: true}),
		of:    make(map[*watcher.Member]*appointment[K]),
	}
}

// add adds a watch that is not in the agenda.
func (a *agenda[K]) add(w *watcher.Member, key K) {
	a.adds++
	e := &appointment[K]{watch: w, key: key, order: a.adds}
	a.of[w] = e
	a.queue.Set(e)
}

// remove removes a watch, if present.
func (a *agenda[K]) remove(w *watcher.Member) {
	if e := a.of[w]; e != nil {
		delete(a.of, w)
		a.queue.Delete(e)
	}
}

// first returns the watch with the lowest key; ok is false if there is none.
func (a *agenda[K]) first() (w *watcher.Member, key K, ok bool) {
	e, ok := a.queue.Min()
	if !ok {
		return nil, key, false
	}
	return e.watch, e.key, true
}

// key returns the key of a watch, zero for one that is not in the agenda.
func (a *agenda[K]) key(w *watcher.Member) (key K) {
	if e := a.of[w]; e != nil {
		key = e.key
	}
	return key
}

func (a *agenda[K]) len() int { return len(a.of) }
