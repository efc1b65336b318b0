package memory

import (
	"cmp"
	"time"

	"github.com/tidwall/btree"

	"github.com/watchmill/watchmill/store"
)

// expiries holds the objects that have a TTL, the first to expire first, and
// those of one time by key: so equal runs delete in equal order.
type expiries struct {
	// Pointers, because the compiler makes one tree for all of them: with values
	// each type of object would have one more of its own to be compiled.
	byTime *btree.BTreeG[*expiry]
}

type expiry struct {
	object *store.Object
	size   int
}

func newExpiries() *expiries {
	sooner := func(a, b *expiry) bool {
		if c := a.object.Expires.Compare(b.object.Expires); c != 0 {
			return c < 0
		}
		return cmp.Less(a.object.Key, b.object.Key)
	}
	return &expiries{btree.NewBTreeGOptions(sooner, btree.Options{NoLocks: true})}
}

func (e *expiries) add(o *store.Object, size int) {
	e.byTime.Set(&expiry{o, size})
}

// remove forgets o, if it is there.
func (e *expiries) remove(o *store.Object) {
	if !o.Expires.IsZero() {
		e.byTime.Delete(&expiry{object: o})
	}
}

// earliest returns when the first object expires; never if none does.
func (e *expiries) earliest() time.Time {
	first, ok := e.byTime.Min()
	if !ok {
		return never
	}
	return first.object.Expires
}

// due removes and returns the first object if it has expired by now, else nil.
func (e *expiries) due(now time.Time) *expiry {
	first, ok := e.byTime.Min()
	if !ok || first.object.Expires.After(now) {
		return nil
	}
	e.byTime.PopMin()
	return first
}

// expiryRun is how many objects are deleted under one hold of the lock: about
// a quarter of a millisecond, as long as others are made to wait.
const expiryRun = 256

// deleteExpired deletes what has expired, then sets the alarm for the next.
func (b *Backend) deleteExpired() {
	for more := true; more; {
		var woken []*watcher
		b.mu.Lock()
		more = b.deleteSomeExpired(&woken)
		b.mu.Unlock()
		wakeAll(woken)
	}
}

// deleteSomeExpired deletes a run of expired objects and reports whether there
// may be more. The caller holds the lock.
func (b *Backend) deleteSomeExpired(woken *[]*watcher) (more bool) {
	if b.closed {
		return false
	}
	b.expire.rang()
	now := b.clock.Now()
	for range expiryRun {
		first := b.expiries.due(now)
		if first == nil {
			b.expire.set(b.expiries.earliest())
			return false
		}
		_, wake := b.bury(first.object, first.size)
		*woken = append(*woken, wake...)
	}
	return true
}
