package informer

import (
	"iter"

	"github.com/watchmill/watchmill/store"
)

// pair is an object in two states, of which one may be missing.
type pair[T any] struct{ old, now *Object[T] }

// compare returns how two states differ: the objects that are gone, and those
// that are new or changed, each in the order of their keys. Both states must be
// in that order. Equal revisions mean equal objects.
//
//	old  a@3  b@5  c@9
//	now       b@5  c@12  d@14       gone: a    changed: c→c, →d
func compare[T any](old iter.Seq2[string, *Object[T]], now []*Object[T]) (gone []*Object[T], changed []pair[T]) {
	i := 0
	for key, was := range old {
		for ; i < len(now) && now[i].Key < key; i++ {
			changed = append(changed, pair[T]{now: now[i]})
		}
		if i == len(now) || now[i].Key != key {
			gone = append(gone, was)
			continue
		}
		if was.Revision != now[i].Revision || was.Created != now[i].Created {
			changed = append(changed, pair[T]{was, now[i]})
		}
		i++
	}
	for ; i < len(now); i++ {
		changed = append(changed, pair[T]{now: now[i]})
	}
	return gone, changed
}

// transition tells how a handler gets from one state of an object to another,
// by what same says of their identity. What it does not know to have happened
// is stale.
func transition[T any](p pair[T], cause Cause, same func(a, b *Object[T]) bool) []Notification[T] {
	switch {
	case p.old == nil:
		return []Notification[T]{{Type: store.Added, Cause: cause, Object: p.now}}
	case same(p.old, p.now):
		return []Notification[T]{{Type: store.Modified, Cause: cause, Old: p.old, Object: p.now}}
	}
	end := p.old.Revision // all that is known: not before that, and before the next was created
	if p.now.Created > end {
		end = p.now.Created - 1
	}
	return []Notification[T]{
		{Type: store.Deleted, Cause: cause, Stale: true, Old: p.old, Object: p.old.Gone(end, p.now.Written)},
		{Type: store.Added, Cause: cause, Object: p.now},
	}
}

// difference tells a handler how to get from the state that it knows to the
// newest, deletions first.
func difference[T any](known, newest *Snapshot[T], same func(a, b *Object[T]) bool) []Notification[T] {
	gone, changed := compare(known.view.All(), newest.view.List())
	told := make([]Notification[T], 0, len(gone)+len(changed))
	for _, object := range gone {
		told = append(told, stale(object, newest.revision))
	}
	var then []Notification[T]
	for _, p := range changed {
		for _, n := range transition(p, Relist, same) {
			if n.Type == store.Deleted {
				told = append(told, n)
			} else {
				then = append(then, n)
			}
		}
	}
	return append(told, then...)
}

// stale tells that an object is not there any more at revision rev.
func stale[T any](object *Object[T], rev store.Revision) Notification[T] {
	return Notification[T]{
		Type: store.Deleted, Cause: Relist, Stale: true,
		Old: object, Object: object.Gone(max(rev, object.Revision), object.Written),
	}
}
