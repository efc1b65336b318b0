package tree

import (
	"cmp"
	"slices"
	"time"

	"github.com/watchmill/watchmill/store"
)

// Diff returns events that lead from the state before to the state now, for a reader
// that followed the changes until revision after and then listed the state at
// revision through, without the changes in between.
//
//	before @after  a@3  b@5  c@9
//	now @through        b@14 c@9  d@12        (after = 10, through = 15)
//	events         DELETED a@11, ADDED d@12, MODIFIED b@14
//
// All events carry the mark [store.Synthetic]. They are in revision order, deletions
// first where revisions are equal, and applying them in order to before gives now:
//
//   - An object with a new key is Added, one with another revision is Modified.
//     Both have the revision of the object, which is the true one.
//   - An object that is gone is Deleted. The true revision is unknown: Diff
//     assigns the lowest in (after, through] that no other event has, in key
//     order, and sets Written to at.
//   - An object with another Created was deleted and created again: it is
//     Deleted, at a revision before its Created, then Added.
//
// Consistent storage leaves a revision for every event. With inconsistent storage
// nothing is lost either: objects' revisions outside of (after, through] count as
// its nearest end, deletions without a free revision share after+1, and through
// counts as after+1 if it is not greater than after.
//
// It takes O(n) comparisons over both states, and nothing if they are the same
// view.
func Diff(schema *store.Schema, before, now *View, after, through store.Revision, at time.Time) []store.Event {
	if before == now {
		return nil
	}
	d := differ{lowest: after + 1, highest: max(through, after+1)}
	before.pairs(now, d.compare)
	d.number(schema, at)
	slices.SortStableFunc(d.events, byRevision)
	return d.events
}

// byRevision orders events by revision, deletions first.
func byRevision(a, b store.Event) int {
	rank := func(e store.Event) int {
		if e.Type == store.Deleted {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(a.Revision, b.Revision), cmp.Compare(rank(a), rank(b)))
}

// differ collects the differences between two states.
type differ struct {
	// lowest and highest are the revisions that an event may have.
	lowest, highest store.Revision
	events          []store.Event
	gone            []departure
}

// departure is an object that was deleted, and must have been before some
// revision: that at which its key was created again, else zero.
type departure struct {
	object *store.Object
	before store.Revision
}

// compare records the change of one key; is or was may be nil.
func (d *differ) compare(was, is *store.Object) {
	switch {
	case was == is:
	case is == nil:
		d.gone = append(d.gone, departure{object: was})
	case was == nil:
		d.put(store.Added, is, nil)
	case was.Created != is.Created:
		added := d.put(store.Added, is, nil)
		d.gone = append(d.gone, departure{was, max(1, min(is.Created, added))})
	case was.Revision != is.Revision:
		d.put(store.Modified, is, was)
	}
}

// put records an Added or Modified event and returns its revision.
func (d *differ) put(t store.EventType, o, prev *store.Object) store.Revision {
	rev := min(max(o.Revision, d.lowest), d.highest)
	d.events = append(d.events, store.Event{Type: t, Marks: store.Synthetic, Revision: rev, Object: o, Prev: prev})
	return rev
}

// number assigns each deletion a revision and makes it an event.
//
// Deletions with a deadline come first, the earliest first (earliest deadline
// first finds an assignment if there is one).
func (d *differ) number(schema *store.Schema, at time.Time) {
	slices.SortStableFunc(d.gone, func(a, b departure) int {
		return cmp.Compare(a.before-1, b.before-1) // zero wraps around to the end
	})
	free := unused{next: d.lowest, taken: d.revisions()}
	for _, g := range d.gone {
		rev := d.lowest
		if n := free.peek(); n <= d.highest && (g.before == 0 || n < g.before) {
			rev = n
			free.next++
		}
		d.events = append(d.events, store.Event{
			Type: store.Deleted, Marks: store.Synthetic, Revision: rev,
			Object: schema.Gone(g.object, rev, at), Prev: g.object,
		})
	}
}

// revisions returns those of the events so far, in order.
func (d *differ) revisions() []store.Revision {
	revs := make([]store.Revision, len(d.events))
	for i, e := range d.events {
		revs[i] = e.Revision
	}
	slices.Sort(revs)
	return revs
}

// unused counts up from next over the numbers that are not taken.
type unused struct {
	next  store.Revision
	taken []store.Revision // in order
}

// peek returns the lowest number that is neither taken nor used up. To use it
// up, increment next.
func (u *unused) peek() store.Revision {
	for len(u.taken) > 0 && u.taken[0] <= u.next {
		if u.taken[0] == u.next {
			u.next++
		}
		u.taken = u.taken[1:]
	}
	return u.next
}

// pairs calls compare for each key in either view, in key order, with the
// object of each, or nil.
func (v *View) pairs(other *View, compare func(mine, others *store.Object)) {
	mine, others := v.cursor(), other.cursor()
	a, b := mine(), others()
	for a != nil || b != nil {
		switch {
		case b == nil || a != nil && a.Key < b.Key:
			compare(a, nil)
			a = mine()
		case a == nil || b.Key < a.Key:
			compare(nil, b)
			b = others()
		default:
			compare(a, b)
			a, b = mine(), others()
		}
	}
}

// cursor returns a function that returns the next object in key order with each
// call, and nil after the last. It is an [iter.Pull] without the coroutine.
func (v *View) cursor() (next func() *store.Object) {
	if v == nil {
		return func() *store.Object { return nil }
	}
	it := partsOf(v).Items.Iter()
	return func() *store.Object {
		if !it.Next() {
			return nil
		}
		return it.Value()
	}
}
