package expiry

import (
	"cmp"
	"time"

	"github.com/tidwall/btree"

	"github.com/watchmill/watchmill/store"
)

// Queue holds the objects that have a TTL, the first to expire first, and those
// of one time by key: so equal runs delete in equal order.
type Queue struct {
	byTime *btree.BTreeG[*Expiring]
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
	return &Queue{btree.NewBTreeGOptions(sooner, btree.Options{NoLocks: true})}
}

// Add adds o, which has a time to expire at.
func (q *Queue) Add(o *store.Object, size int) { q.byTime.Set(&Expiring{o, size}) }

// Remove forgets o, if it is there.
func (q *Queue) Remove(o *store.Object) {
	if !o.Expires.IsZero() {
		q.byTime.Delete(&Expiring{Object: o})
	}
}

// Earliest returns when the first object expires; [Never] if none does.
func (q *Queue) Earliest() time.Time {
	first, ok := q.byTime.Min()
	if !ok {
		return Never
	}
	return first.Object.Expires
}

// Due removes and returns the first object if it has expired by now, else nil.
func (q *Queue) Due(now time.Time) *Expiring {
	first, ok := q.byTime.Min()
	if !ok || first.Object.Expires.After(now) {
		return nil
	}
	q.byTime.PopMin()
	return first
}

// Expired returns up to n objects that have expired by now, in order, and leaves
// them in the queue.
func (q *Queue) Expired(now time.Time, n int) (expired []*Expiring) {
	q.byTime.Scan(func(e *Expiring) bool {
		if len(expired) == n || e.Object.Expires.After(now) {
			return false
		}
		expired = append(expired, e)
		return true
	})
	return expired
}
