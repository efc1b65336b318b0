package informer

import (
	"iter"

	"github.com/watchmill/watchmill/store"
)

// pair is an object in two states, of which one may be missing.
type pair struct{ old, now *store.Object }

// compare returns how two states differ: the objects that are gone, and those
// that are new or changed, each in the order of their keys. Both states must be
// in that order. Equal revisions mean equal objects.
//
//	old  a@3  b@5  c@9
//	now       b@5  c@12  d@14       gone: a    changed: c→c, →d
func compare(old iter.Seq2[string, *store.Object], now []*store.Object) (gone []*store.Object, changed []pair) {
	i := 0
	for key, was := range old {
		for ; i < len(now) && now[i].Key < key; i++ {
			changed = append(changed, pair{now: now[i]})
		}
		if i == len(now) || now[i].Key != key {
			gone = append(gone, was)
			continue
		}
		if was.Revision != now[i].Revision || was.Created != now[i].Created {
			changed = append(changed, pair{was, now[i]})
		}
		i++
	}
	for ; i < len(now); i++ {
		changed = append(changed, pair{now: now[i]})
	}
	return gone, changed
}

// transition tells how a handler gets from one state of an object to another. A
// deletion that was not seen happening is stale.
func (t *transformer) transition(p pair, cause Cause) []notification {
	switch {
	case p.old == nil:
		return []notification{added(p.now, cause)}
	case t.same(p.old, p.now):
		return []notification{{Type: store.Modified, Cause: cause, Old: p.old, Object: p.now}}
	}
	end := p.old.Revision // all that is known: not before that, and before the next was created
	if p.now.Created > end {
		end = p.now.Created - 1
	}
	return []notification{
		{Type: store.Deleted, Cause: cause, Stale: true, Old: p.old, Object: t.cfg.schema.Gone(p.old, end, p.now.Written)},
		added(p.now, cause),
	}
}

// difference tells a handler how to get from the state that it knows to the
// newest, deletions first.
func (t *transformer) difference(known, newest *state) []notification {
	gone, changed := compare(known.view.All(), newest.view.List())
	deletions := make([]notification, 0, len(gone)+len(changed))
	for _, object := range gone {
		deletions = append(deletions, t.gone(object, newest.revision))
	}
	var others []notification
	for _, p := range changed {
		for _, n := range t.transition(p, Relist) {
			if n.Type == store.Deleted {
				deletions = append(deletions, n)
			} else {
				others = append(others, n)
			}
		}
	}
	return append(deletions, others...)
}

// gone tells that an object is not there any more at revision rev.
func (t *transformer) gone(object *store.Object, rev store.Revision) notification {
	return notification{
		Type: store.Deleted, Cause: Relist, Stale: true,
		Old: object, Object: t.cfg.schema.Gone(object, max(rev, object.Revision), object.Written),
	}
}
