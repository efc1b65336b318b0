package informer

import "github.com/watchmill/watchmill/store"

// conflation is what a handler that fell behind still has to be told: per
// object, how to get from what it knows to the newest. An object that came and
// went meanwhile is not in it. So it is never larger than the objects that the
// handler knows and those that there are.
//
//	fold:  ADD a   MOD b@5→6   ADD c   DEL a   MOD b@6→7   DEL d
//	left:          MOD b@5→7   ADD c                       DEL d
type conflation[T any] struct {
	same  func(a, b *Object[T]) bool
	byKey map[string]*turnabout[T]
	// order is in the order of the first change; with nil Old and now it is one
	// that has been dropped.
	order []*turnabout[T]
}

// turnabout is one object: what the handler knows of it, and what it is to be
// told.
type turnabout[T any] struct {
	old, now *Object[T] // nil: unknown to the handler; gone
	// end is the first deletion among what was folded.
	end   Notification[T]
	cause Cause
}

func newConflation[T any](same func(a, b *Object[T]) bool) *conflation[T] {
	return &conflation[T]{same: same, byKey: make(map[string]*turnabout[T])}
}

// len returns how many objects there are changes of.
func (c *conflation[T]) len() int { return len(c.byKey) }

// fold adds notifications, which come in order.
func (c *conflation[T]) fold(notifications []Notification[T]) {
	for _, n := range notifications {
		c.add(n)
	}
	if len(c.order) > 2*len(c.byKey)+minConflation {
		c.compact()
	}
}

// minConflation keeps small conflations from being compacted all the time.
const minConflation = 64

func (c *conflation[T]) add(n Notification[T]) {
	t := c.byKey[n.Key()]
	if t == nil {
		t = &turnabout[T]{old: n.Old}
		c.byKey[n.Key()] = t
		c.order = append(c.order, t)
	}
	t.cause, t.now = n.Cause, n.Object
	if n.Type == store.Deleted {
		t.now = nil
		if t.end.Object == nil {
			t.end = n
		}
	}
	if t.old == nil && t.now == nil {
		delete(c.byKey, n.Key())
	}
}

// compact forgets what was dropped.
func (c *conflation[T]) compact() {
	kept := make([]*turnabout[T], 0, len(c.byKey))
	for _, t := range c.order {
		if t.old != nil || t.now != nil {
			kept = append(kept, t)
		}
	}
	c.order = kept
}

// notifications returns what to tell.
func (c *conflation[T]) notifications() []Notification[T] {
	told := make([]Notification[T], 0, len(c.byKey))
	for _, t := range c.order {
		told = t.appendTo(told, c.same)
	}
	return told
}

func (t *turnabout[T]) appendTo(told []Notification[T], same func(a, b *Object[T]) bool) []Notification[T] {
	switch {
	case t.old == nil && t.now == nil:
		return told
	case t.now == nil:
		return append(told, t.deletion())
	case t.old != nil && t.end.Object != nil && !same(t.old, t.now):
		return append(told, t.deletion(), Notification[T]{Type: store.Added, Cause: t.cause, Object: t.now})
	}
	return append(told, transition(pair[T]{t.old, t.now}, t.cause, same)...)
}

// deletion is the first one, of the object that the handler knows.
func (t *turnabout[T]) deletion() Notification[T] {
	n := t.end
	n.Old = t.old
	return n
}
