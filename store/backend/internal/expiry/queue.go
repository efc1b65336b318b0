package expiry

import (
	"cmp"
	"time"

	"github.com/tidwall/btree"

	"github.com/watchmill/watchmill/store"
)

// Queue holds the objects that have a TTL, the first to expire first, and those
// of one time by key: so equal runs delete in equal order.
//
// Times with a monotonic reading, as the real clock gives them, are compared by it, and
// others, as those from a file, by the wall clock. Once the wall clock has been set, a
// mixture of both has no order, so each has a tree of its own.
type Queue struct {
	running sorted // with a monotonic reading
	wall    sorted // without
}

// sorted is a B-tree, as an interface to save compile time: a package that can reach a generic
// B-tree through the fields of a backend compiles all its methods again.
type sorted interface {
	Set(e *Expiring) (prev *Expiring, replaced bool)
	Delete(e *Expiring) (prev *Expiring, found bool)
	Len() int
	Min() (first *Expiring, ok bool)
	Scan(yield func(e *Expiring) bool)
}

// Expiring is an object that has a TTL.
type Expiring struct {
	Object *store.Object
	// Size is the object's, measured when it was written.
	Size int
}

// NewQueue returns an empty queue.
func NewQueue() *Queue {
	sooner := func(a, b *Expiring) bool {
		if c := a.Object.Expires.Compare(b.Object.Expires); c != 0 {
			return c < 0
		}
		return cmp.Less(a.Object.Key, b.Object.Key)
	}
	tree := func() sorted {
		return btree.NewBTreeGOptions(sooner, btree.Options{NoLocks: true})
	}
	return &Queue{running: tree(), wall: tree()}
}

// of returns the tree of objects that expire at such a time.
func (q *Queue) of(at time.Time) sorted {
	if at == at.Round(0) { // which has no monotonic reading
		return q.wall
	}
	return q.running
}

// Add adds o, which has a time to expire at.
func (q *Queue) Add(o *store.Object, size int) { q.of(o.Expires).Set(&Expiring{o, size}) }

// Remove forgets o, if it is there.
func (q *Queue) Remove(o *store.Object) {
	if !o.Expires.IsZero() {
		q.of(o.Expires).Delete(&Expiring{Object: o})
	}
}

// Earliest returns when the first object expires, as seen from now; [Never] if none does.
func (q *Queue) Earliest(now time.Time) time.Time {
	if q.running.Len()+q.wall.Len() == 0 {
		return Never // asked by each write, where mostly no object expires
	}
	first, ok := q.running.Min()
	if other, too := q.wall.Min(); too && (!ok || other.Object.Expires.Sub(now) < first.Object.Expires.Sub(now)) {
		first, ok = other, true
	}
	if !ok {
		return Never
	}
	return first.Object.Expires
}

// byWall reports whether there are objects that expire by the wall clock.
func (q *Queue) byWall() bool { return q.wall.Len() > 0 }

// Expired returns up to n objects that have expired by now, in the order of their expiries and
// keys, but those that expire by the wall clock last. They stay in the queue until they are
// removed, so that a deletion that fails does not lose its object.
func (q *Queue) Expired(now time.Time, n int) (expired []*Expiring) {
	take := func(e *Expiring) bool {
		if len(expired) == n || e.Object.Expires.After(now) {
			return false
		}
		expired = append(expired, e)
		return true
	}
	q.running.Scan(take)
	q.wall.Scan(take)
	return expired
}
