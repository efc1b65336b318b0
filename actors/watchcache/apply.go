package watchcache

import (
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/store"
)

// upstream applies what the Reflector tells.
func (c *cache[T]) upstream(u reflector.Update[T]) {
	switch u.Kind {
	case reflector.Replace:
		c.replace(u)
	case reflector.Changes:
		if c.distrusted {
			return // a list is on its way; these changes are in it
		}
		if !c.applyAll(u.Events) {
			c.distrust()
			return
		}
		c.advance(u.Revision)
	case reflector.Progress:
		if !c.distrusted {
			c.advance(u.Revision)
		}
	case reflector.Unavailable:
		c.setReadiness(c.readiness.pending(c.now, u.Err))
		return
	}
	if !c.distrusted && c.readiness.state == Pending {
		c.setReadiness(c.readiness.ready(c.now))
		c.dirty = true
	}
}

// advance notes that nothing up to rev is still to come.
func (c *cache[T]) advance(rev store.Revision) {
	if rev <= c.revision {
		return
	}
	c.revision = rev
	c.window.Advance(rev)
	c.dirty = true
}

// applyAll applies events in order. It stops and reports false at one that does
// not fit the state: something before it was lost.
func (c *cache[T]) applyAll(events []store.Event[T]) bool {
	for _, ev := range events {
		if !c.apply(ev) {
			c.Stats.Inconsistent.Add(1)
			return false
		}
	}
	c.Stats.Events.Add(uint64(len(events)))
	return true
}

// apply adds one event to the window and the state. The previous state that
// watchers see is the cache's own.
func (c *cache[T]) apply(ev store.Event[T]) bool {
	if ev.Type == store.Bookmark {
		return true
	}
	ev.Prev = nil
	if ev.Type != store.Emitted {
		prev := c.tree.Get(ev.Object.Key)
		if (prev == nil) != (ev.Type == store.Added) {
			return false
		}
		ev.Prev = prev
	}
	c.window.Append(ev, c.now, c.tree)
	switch ev.Type {
	case store.Added, store.Modified:
		c.tree.Put(ev.Object)
	case store.Deleted:
		c.tree.Delete(ev.Object.Key)
	}
	c.revision = ev.Revision
	c.dirty = true
	return true
}

// replace takes a list as the state. The first one starts the window; a later
// one goes through it as the difference, so that watches live on.
func (c *cache[T]) replace(u reflector.Update[T]) {
	listed := store.NewTree[T](c.Indexes...)
	for _, o := range u.Objects {
		listed.Put(o)
	}
	c.Stats.Replaces.Add(1)
	c.distrusted = false
	c.dirty = true
	switch {
	case c.readiness.generation == 0:
		c.window.Reset(u.Revision)
	case u.Revision < c.revision:
		// Storage went back in time: nothing that anyone holds means anything.
		c.window.Reset(u.Revision)
		c.epoch++
	default:
		events := store.Diff(c.tree.View(), listed.View(), c.revision, u.Revision, c.now)
		c.window.AppendDiff(events, c.revision, u.Revision, c.now, c.tree)
		c.Stats.Synthetic.Add(uint64(len(events)))
	}
	c.tree = listed
	c.revision = u.Revision
	c.window.Advance(u.Revision)
}

// distrust stops believing in the state until the Reflector has listed again.
func (c *cache[T]) distrust() {
	c.distrusted = true
	c.Relist(reflector.Distrusted)
}
