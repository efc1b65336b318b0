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
func (p *updater) commit() {
	s := p.informer
	c := commit{informer: s, filled: p.filled}
	s.writing.Lock()
	for _, u := range p.gathered {
		c.apply(u)
	}
	clear(p.gathered)
	p.gathered = p.gathered[:0]
	if s.transform.failure() != nil || !c.reached {
		s.writing.Unlock()
		return // it is not to be shown, or there is nothing to show
	}
	after := s.publish(c.revision)
	s.writing.Unlock()
	s.waiters.reach(after.revision)
	p.tell(&c, after)
}

// tell passes a commit on to the handlers.
func (p *updater) tell(c *commit, after *state) {
	if !p.filled {
		p.filled = true
		p.informer.endFirstList()
		for _, l := range p.listeners {
			l.pending.begin(after, Initial)
			l.box.Wake()
		}
		return
	}
	if len(c.notifications) == 0 {
		return
	}
	p.informer.notified.Add(uint64(len(c.notifications)))
	b := &batch{notifications: c.notifications, after: after}
	for _, l := range p.listeners {
		l.offer(b)
	}
}

// commit is one in the making. Its methods run under informer.writing.
type commit struct {
	informer *sharedInformer
	filled   bool
	// initial: the first list is part of it, so nothing needs to be told but the
	// state.
	initial       bool
	notifications []notification
	// revision is the one reached, if any was.
	revision store.Revision
	reached  bool
}

// apply takes one update into the store.
func (c *commit) apply(u reflector.Update) {
	if u.Kind == reflector.Unavailable {
		c.informer.unavailable(u)
		return
	}
	c.informer.sourceErr.Store(nil)
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
func (c *commit) tell(notifications ...notification) {
	if !c.initial {
		c.notifications = append(c.notifications, notifications...)
	}
}

// fill takes the first list. The store's index functions cannot fail, so
// neither does that.
func (c *commit) fill(u reflector.Update) {
	c.filled, c.initial = true, true
	_ = c.informer.objects.Replace(c.transformed(u.Objects), u.Revision)
}

// transformed iterates over the objects as they are to be stored.
func (c *commit) transformed(objects []*store.Object) iter.Seq2[string, *store.Object] {
	return func(yield func(string, *store.Object) bool) {
		for _, o := range objects {
			if now, ok := c.informer.transform.apply(o); ok && !yield(o.Key, now) {
				return
			}
		}
	}
}

// relist takes a later list, as the difference to what is stored: deletions are
// told first. Objects that did not change cost a comparison, no more.
func (c *commit) relist(u reflector.Update) {
	s := c.informer
	gone, changed := compare(s.objects.View().All(), u.Objects)
	for _, o := range gone {
		s.objects.Delete(o.Key, u.Revision)
		c.tell(s.transform.gone(o, u.Revision))
	}
	var then []notification
	for _, p := range changed {
		now, ok := s.transform.apply(p.now)
		if !ok {
			continue // what was there before stays
		}
		c.put(now)
		for _, n := range s.transform.transition(pair{p.old, now}, Relist) {
			if n.Type == store.Deleted {
				c.tell(n)
			} else {
				then = append(then, n)
			}
		}
	}
	c.tell(then...)
	s.transform.releaseAbsent(func(key string) bool {
		_, found := slices.BinarySearchFunc(u.Objects, key, func(o *store.Object, key string) int { return strings.Compare(o.Key, key) })
		return found
	})
}

// put stores an object. Its index functions cannot fail.
func (c *commit) put(o *store.Object) { _ = c.informer.objects.Update(o.Key, o, o.Revision) }

// change takes one event. What is not state is left out.
func (c *commit) change(ev store.Event) {
	switch ev.Type {
	case store.Added, store.Modified:
		now, ok := c.informer.transform.apply(ev.Object)
		if !ok {
			return // what was there before stays
		}
		old, _ := c.informer.objects.Get(now.Key)
		c.put(now)
		c.tell(c.informer.transform.transition(pair{old, now}, causeOf(ev))...)
	case store.Deleted:
		c.delete(ev)
	}
}

func (c *commit) delete(ev store.Event) {
	s, key := c.informer, ev.Object.Key
	s.transform.release(key)
	old, known := s.objects.Get(key)
	if !known {
		return // it could never be taken
	}
	s.objects.Delete(key, ev.Revision)
	c.tell(notification{
		Type: store.Deleted, Cause: causeOf(ev), Stale: ev.Is(store.Synthetic),
		Old: old, Object: s.cfg.schema.Gone(old, ev.Revision, ev.Object.Written),
	})
}

// causeOf tells whether an event was seen happening by the source, or found by
// comparing, as after an outage of what the source itself follows.
func causeOf(ev store.Event) Cause {
	if ev.Is(store.Synthetic) {
		return Relist
	}
	return Change
}
