package informer

import (
	"iter"
	"slices"
	"strings"

	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/store"
)

// commit applies the gathered updates to the store, publishes the state, and then
// notifies the handlers, so that they always read a state that the source had. The end
// of the source comes last, since calls that wait must have what came before it.
func (p *updater) commit() {
	if !p.informer.writing.TryLock() {
		return // addIndexers has the lock, and makes the actor check again
	}
	c := commit{informer: p.informer, filled: p.filled}
	if after := p.applyGathered(&c); after != nil {
		p.informer.waiters.reach(after.revision)
		p.notify(&c, after)
	}
	if c.ended != nil {
		p.informer.sourceEnded(c.ended)
	}
}

// applyGathered applies the gathered updates and returns the state that it has
// published; nil if the informer must end, or the state has not changed. It gives up the
// lock, which the caller has taken, even if a Transform ends the goroutine.
func (p *updater) applyGathered(c *commit) (after *state) {
	s := p.informer
	defer s.writing.Unlock()
	s.unpublished = true
	for _, u := range p.gathered {
		c.apply(u)
	}
	clear(p.gathered)
	p.gathered = p.gathered[:0]
	if s.transform.failure() != nil {
		return nil
	}
	s.unpublished = false
	if !c.reached {
		return nil
	}
	return s.publish(c.revision)
}

// notify offers a commit's notifications to the handlers.
func (p *updater) notify(c *commit, after *state) {
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

// commit collects the effects of updates. Its methods run under informer.writing.
type commit struct {
	informer *sharedInformer
	filled   bool
	// initial: the commit includes the first list, so handlers start with the
	// state and need no notifications.
	initial       bool
	notifications []notification
	// revision is that of the store, if reached is set.
	revision store.Revision
	reached  bool
	// ended is why the source has ended, nil if it has not.
	ended *SourceError
}

// apply applies one update to the store.
func (c *commit) apply(u reflector.Update) {
	if u.Kind == reflector.Unavailable {
		c.unavailable(u)
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

// unavailable handles an Unavailable update. The Reflector has reported its error before,
// but not that it is final.
func (c *commit) unavailable(u reflector.Update) {
	failed := &SourceError{Informer: c.informer.cfg.name, Final: u.Final, Err: u.Err}
	c.informer.sourceErr.Store(failed)
	if u.Final {
		c.ended = failed
	}
}

// add adds notifications, unless handlers start with the state itself.
func (c *commit) add(notifications ...notification) {
	if !c.initial {
		c.notifications = append(c.notifications, notifications...)
	}
}

// fill stores the first list. It cannot fail, since the store's index functions
// cannot.
func (c *commit) fill(u reflector.Update) {
	c.filled, c.initial, c.informer.storeID = true, true, u.StoreID
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

// relist applies a later list as the difference to the stored objects, deletions
// first. An unchanged object costs one comparison.
func (c *commit) relist(u reflector.Update) {
	s := c.informer
	same := sameRevision
	otherStorage := u.StoreID != s.storeID || u.StoreID == "" && c.wentBack(u)
	if otherStorage {
		same = sameObject
		s.storeID = u.StoreID
		s.storages++
	}
	gone, changed := compare(s.objects.View().All(), u.Objects, same)
	found := make([]notification, 0, len(gone)+len(changed))
	for _, o := range gone {
		s.objects.Delete(o.Key, u.Revision)
		found = append(found, s.transform.gone(o, u.Revision))
	}
	for _, p := range changed {
		now, ok := s.transform.apply(p.now)
		switch {
		case ok:
			_ = c.put(now)
			found = s.transform.appendTransition(found, pair{p.old, now}, Relist)
		case p.old != nil && (otherStorage || s.transform.recreated(p)):
			// Transform has failed, so the previous state would stay, but it is of an earlier object
			// or of another storage.
			s.objects.Delete(p.old.Key, u.Revision)
			found = append(found, s.transform.replaced(p, Relist))
		}
	}
	c.add(deletionsFirst(found)...)
	s.transform.releaseAbsent(func(key string) bool {
		_, found := slices.BinarySearchFunc(u.Objects, key, func(o *store.Object, key string) int { return strings.Compare(o.Key, key) })
		return found
	})
}

// wentBack reports whether storage went back in time before a list, so that its objects of
// equal revisions may differ: the list is older, or the source had shown it before the list.
func (c *commit) wentBack(u reflector.Update) bool {
	reached := c.informer.published.Load().revision
	if c.reached {
		reached = c.revision
	}
	return u.Reason == reflector.Future || u.Reason == reflector.Repeated || u.Revision < reached
}

// put stores an object and returns the one that it replaces, if any. The index functions
// cannot fail.
func (c *commit) put(o *store.Object) (old *store.Object) {
	old, _, _ = c.informer.objects.Swap(o.Key, o, o.Revision)
	return old
}

// change applies one event. It ignores bookmarks and emitted values, which are not
// state.
func (c *commit) change(ev store.Event) {
	switch ev.Type {
	case store.Added, store.Modified:
		now, ok := c.informer.transform.apply(ev.Object)
		if !ok {
			return // its state before stays
		}
		old := c.put(now)
		if !c.initial {
			c.notifications = c.informer.transform.appendTransition(c.notifications, pair{old, now}, causeOf(ev))
		}
	case store.Deleted:
		c.delete(ev)
	}
}

func (c *commit) delete(ev store.Event) {
	s, key := c.informer, ev.Object.Key
	s.transform.release(key)
	old, known := s.objects.Get(key)
	if !known {
		return // it was never stored
	}
	s.objects.Delete(key, ev.Revision)
	c.add(notification{
		Type: store.Deleted, Cause: causeOf(ev), Stale: ev.Is(store.Synthetic),
		Old: old, Object: s.transform.deleted(old, ev),
	})
}

// causeOf returns Relist for an event that the source found by comparing states,
// as after an outage of its own source, and Change otherwise.
func causeOf(ev store.Event) Cause {
	if ev.Is(store.Synthetic) {
		return Relist
	}
	return Change
}

// pair is two states of an object. One of them may be missing.
type pair struct{ old, now *store.Object }

// compare returns how two states differ: the objects that are gone, and those
// that are new or changed, each in the order of their keys. Both states must be
// in that order. same reports whether an object is unchanged.
//
//	old  a@3  b@5  c@9
//	now       b@5  c@12  d@14       gone: a    changed: c→c, →d
func compare(old iter.Seq2[string, *store.Object], now []*store.Object, same func(was, now *store.Object) bool) (gone []*store.Object, changed []pair) {
	i := 0
	for key, was := range old {
		for ; i < len(now) && now[i].Key < key; i++ {
			changed = append(changed, pair{now: now[i]})
		}
		if i == len(now) || now[i].Key != key {
			gone = append(gone, was)
			continue
		}
		if !same(was, now[i]) {
			changed = append(changed, pair{was, now[i]})
		}
		i++
	}
	for ; i < len(now); i++ {
		changed = append(changed, pair{now: now[i]})
	}
	return gone, changed
}

// sameRevision is for two states of one storage, where equal revisions mean equal
// objects.
func sameRevision(a, b *store.Object) bool { return a.Revision == b.Revision && a.Created == b.Created }

// sameObject is for the states of different storages, or of one that went back in time.
func sameObject(a, b *store.Object) bool { return a == b }

// appendTransition appends the notifications from one state of an object to another.
func (t *transformer) appendTransition(to []notification, p pair, cause Cause) []notification {
	switch {
	case p.old == nil:
		return append(to, added(p.now, cause))
	case t.same(p.old, p.now):
		return append(to, notification{Type: store.Modified, Cause: cause, Old: p.old, Object: p.now})
	}
	return append(to, t.replaced(p, cause), added(p.now, cause))
}

// replaced returns the notification that an object was deleted before the one that there
// is now was created. Only comparing states has shown that, so it is stale.
func (t *transformer) replaced(p pair, cause Cause) notification {
	end := p.old.Revision // the deletion was after that
	// Created may be no revision, but a number that only tells objects apart, as of a remote server's.
	if before := min(p.now.Created, p.now.Revision); before > end {
		end = before - 1
	}
	return notification{Type: store.Deleted, Cause: cause, Stale: true, Old: p.old, Object: t.cfg.schema.Gone(p.old, end, p.now.Written)}
}

// difference returns the notifications from the state that a handler knows to the
// newest, deletions first.
func (t *transformer) difference(known, newest *state) []notification {
	gone, changed := compare(known.view.All(), newest.view.List(), sameObject)
	found := make([]notification, 0, len(gone)+len(changed))
	for _, object := range gone {
		found = append(found, t.gone(object, newest.revision))
	}
	for _, p := range changed {
		found = t.appendTransition(found, p, Relist)
	}
	return deletionsFirst(found)
}

// deletionsFirst moves the deletions to the front and keeps the order otherwise.
func deletionsFirst(all []notification) []notification {
	deletions, others := all[:0], make([]notification, 0, len(all))
	for _, n := range all {
		if n.Type == store.Deleted {
			deletions = append(deletions, n)
		} else {
			others = append(others, n)
		}
	}
	return append(deletions, others...)
}

// deleted returns the object of a deletion: the event's, in which a value that carries its
// revision has the new one, if the event deletes what is stored. Otherwise it is made of that.
func (t *transformer) deleted(old *store.Object, ev store.Event) *store.Object {
	if ev.Prev == old {
		return ev.Object
	}
	return t.cfg.schema.Gone(old, ev.Revision, ev.Object.Written)
}

// gone returns the notification that an object no longer exists at revision rev.
func (t *transformer) gone(object *store.Object, rev store.Revision) notification {
	return notification{
		Type: store.Deleted, Cause: Relist, Stale: true,
		Old: object, Object: t.cfg.schema.Gone(object, max(rev, object.Revision), object.Written),
	}
}
