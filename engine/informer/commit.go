package informer

import (
	"iter"
	"slices"
	"strings"

	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/store"
)

// commit takes in what was gathered: first the store, then what is published,
// then the handlers. They so always see a state that the source had.
func (m *mirror[T]) commit() {
	s := m.shared
	c := commit[T]{shared: s, filled: m.filled}
	s.writing.Lock()
	for _, u := range m.gathered {
		c.apply(u)
	}
	clear(m.gathered)
	m.gathered = m.gathered[:0]
	if s.ingress.failure() != nil || !c.reached {
		s.writing.Unlock()
		return // it is not to be shown, or there is nothing to show
	}
	after := s.publish(c.revision)
	s.writing.Unlock()
	s.waiters.reach(after.revision)
	m.tell(&c, after)
}

// tell passes a commit on to the handlers.
func (m *mirror[T]) tell(c *commit[T], after *Snapshot[T]) {
	if !m.filled {
		m.filled = true
		m.shared.settle()
		for _, l := range m.listeners {
			l.backlog.begin(after, Initial)
			l.box.Wake()
		}
		return
	}
	if len(c.told) == 0 {
		return
	}
	m.shared.notified.Add(uint64(len(c.told)))
	b := &batch[T]{notifications: c.told, after: after}
	for _, l := range m.listeners {
		l.offer(b)
	}
}

// commit is one in the making. Its methods run under shared.writing.
type commit[T any] struct {
	shared *SharedInformer[T]
	filled bool
	// initial: the first list is part of it, so nothing needs to be told but the
	// state.
	initial bool
	told    []Notification[T]
	// revision is the one reached, if any was.
	revision store.Revision
	reached  bool
}

// apply takes one update into the store.
func (c *commit[T]) apply(u reflector.Update[T]) {
	if u.Kind == reflector.Unavailable {
		c.shared.unavailable(u)
		return
	}
	c.shared.trouble.Store(nil)
	switch {
	case u.Kind == reflector.Replace && !c.filled:
		c.fill(u)
	case u.Kind == reflector.Replace:
		c.relist(u)
	case u.Kind == reflector.Changes:
		for _, ev := range u.Events {
			c.change(ev)
		}
	}
	c.revision, c.reached = u.Revision, true
}

// tell adds notifications, unless the state itself will be told.
func (c *commit[T]) tell(notifications ...Notification[T]) {
	if !c.initial {
		c.told = append(c.told, notifications...)
	}
}

// fill takes the first list. The store's index functions cannot fail, so
// neither does that.
func (c *commit[T]) fill(u reflector.Update[T]) {
	c.filled, c.initial = true, true
	_ = c.shared.objects.Replace(c.taken(u.Objects), u.Revision)
}

// taken iterates over the objects as they are to be stored.
func (c *commit[T]) taken(objects []*Object[T]) iter.Seq2[string, *Object[T]] {
	return func(yield func(string, *Object[T]) bool) {
		for _, o := range objects {
			if taken, ok := c.shared.ingress.take(o); ok && !yield(o.Key, taken) {
				return
			}
		}
	}
}

// relist takes a later list, as the difference to what is stored: deletions are
// told first. Objects that did not change cost a comparison, no more.
func (c *commit[T]) relist(u reflector.Update[T]) {
	s := c.shared
	gone, changed := compare(s.objects.View().All(), u.Objects)
	for _, o := range gone {
		s.objects.Delete(o.Key, u.Revision)
		c.tell(stale(o, u.Revision))
	}
	var then []Notification[T]
	for _, p := range changed {
		taken, ok := s.ingress.take(p.now)
		if !ok {
			continue // what was there before stays
		}
		c.put(taken)
		for _, n := range transition(pair[T]{p.old, taken}, Relist, s.ingress.same) {
			if n.Type == store.Deleted {
				c.tell(n)
			} else {
				then = append(then, n)
			}
		}
	}
	c.tell(then...)
	s.ingress.healAbsent(func(key string) bool {
		_, found := slices.BinarySearchFunc(u.Objects, key, func(o *Object[T], key string) int { return strings.Compare(o.Key, key) })
		return found
	})
}

// put stores an object. Its index functions cannot fail.
func (c *commit[T]) put(o *Object[T]) { _ = c.shared.objects.Update(o.Key, o, o.Revision) }

// change takes one event. What is not state passes by.
func (c *commit[T]) change(ev store.Event[T]) {
	switch ev.Type {
	case store.Added, store.Modified:
		taken, ok := c.shared.ingress.take(ev.Object)
		if !ok {
			return // what was there before stays
		}
		old, _ := c.shared.objects.Get(taken.Key)
		c.put(taken)
		c.tell(transition(pair[T]{old, taken}, causeOf(ev), c.shared.ingress.same)...)
	case store.Deleted:
		c.delete(ev)
	}
}

func (c *commit[T]) delete(ev store.Event[T]) {
	s, key := c.shared, ev.Object.Key
	s.ingress.heal(key)
	old, known := s.objects.Get(key)
	if !known {
		return // it could never be taken
	}
	s.objects.Delete(key, ev.Revision)
	c.tell(Notification[T]{
		Type: store.Deleted, Cause: causeOf(ev), Stale: ev.Is(store.Synthetic),
		Old: old, Object: old.Gone(ev.Revision, ev.Object.Written),
	})
}

// causeOf tells whether an event was seen happening by the source, or found by
// comparing, as after an outage of what the source itself mirrors.
func causeOf[T any](ev store.Event[T]) Cause {
	if ev.Is(store.Synthetic) {
		return Relist
	}
	return Change
}
