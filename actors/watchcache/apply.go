package watchcache

import (
	"errors"
	"fmt"

	"github.com/watchmill/watchmill/actors/dispatcher"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/tree"
)

// ErrInconsistent: the state differs from storage's. The Reflector relists.
var ErrInconsistent = errors.New("cache is inconsistent with storage")

// upstream applies an update of the Reflector.
func (c *cache) upstream(u reflector.Update) {
	switch {
	case u.Final:
		c.end(u.Err)
		return
	case u.Kind == reflector.Unavailable:
		c.setReadiness(c.readiness.pending(c.now, u.Err))
		return
	case u.Kind == reflector.Replace:
		c.replace(u)
	case c.distrusted:
		return // the list to come includes this
	case !c.changes(u):
		return
	}
	c.advance(u.Revision)
	if c.readiness.state == Pending && c.revision >= c.until {
		c.setReadiness(c.readiness.ready(c.now))
	}
}

// end makes the cache Ended because of cause. Calls that wait for it to become ready are
// answered, and each watch ends when it has delivered what there is, since nothing more will
// come.
func (c *cache) end(cause error) {
	c.setReadiness(c.readiness.ended(c.now, cause))
	reason := c.readiness.check(c.now)
	c.waiters.all(reason)
	c.registerDelayed() // which refuses them
	c.publish()
	c.Dispatcher.Tell(dispatcher.Drain{Reason: reason})
}

// advance records that every change up to rev has been applied.
func (c *cache) advance(rev store.Revision) {
	if rev <= c.revision {
		return
	}
	c.revision = rev
	c.window.Advance(rev)
	c.dirty = true
}

// changes applies events. If the source shares its state, they only go into the
// window: a state of the source has them, now or later.
func (c *cache) changes(u reflector.Update) bool {
	shared := usable(u.State, c.Indexes)
	if !shared && c.state.tree != nil {
		return c.applyAll(u.Events)
	}
	for _, ev := range u.Events {
		if ev.Type != store.Bookmark {
			c.append(ev)
		}
	}
	if shared {
		c.state = state{base: u.State, at: c.window.Next()}
	}
	c.Stats.Events.Add(uint64(len(u.Events)))
	return true
}

// applyAll applies events in order. It stops and reports false at one that does
// not fit the state, since an earlier event must have been lost.
func (c *cache) applyAll(events []store.Event) bool {
	for i, ev := range events {
		if !c.apply(ev) {
			c.Stats.Events.Add(uint64(i))
			c.Stats.Inconsistent.Add(1)
			err := fmt.Errorf("%w: %v does not fit the state at %d", ErrInconsistent, ev, c.revision)
			c.Report(err)
			c.distrust(err)
			return false
		}
	}
	c.Stats.Events.Add(uint64(len(events)))
	return true
}

// apply adds one event to the window and the state. The event's previous object
// is the cache's own.
func (c *cache) apply(ev store.Event) bool {
	if ev.Type == store.Bookmark {
		return true
	}
	prev, fits := c.state.apply(ev)
	if !fits {
		return false
	}
	if ev.Type == store.Deleted && ev.Prev == nil { // by NoPrev, its object may have only a key and a revision
		ev.Object = c.Schema.Gone(prev, ev.Revision, ev.Object.Written)
	}
	ev.Prev = prev
	c.append(ev)
	return true
}

// append adds one event to the window.
func (c *cache) append(ev store.Event) {
	if ev.Type == store.Emitted && c.handle.gap {
		ev.Marks |= store.AfterGap
		c.handle.gap = false
	}
	c.window.Append(ev, c.now)
	c.revision = ev.Revision
	c.dirty = true
}

// replace takes a list as the state. The first one starts the window; the
// difference to a later one goes through it as events, so that watches continue,
// unless the list is of another storage.
func (c *cache) replace(u reflector.Update) {
	c.doubt()
	other := c.filled && c.storeID != u.StoreID
	c.uncompact(u.Revision, other)
	listed := newState(u, c.Indexes)
	c.Stats.Replaces.Add(1)
	before, again := c.Stats.Synthetic.Load(), c.filled
	switch {
	case !c.filled:
		c.window.Reset(u.Revision)
	case other || !c.appendDiff(listed.base, u.Revision):
		c.window.Reset(u.Revision)
		c.epoch++
	case c.readiness.wrong:
		c.window.RaiseFloor(u.Revision) // what leads to the list leads from wrong states
	}
	c.state, c.revision, c.storeID = listed, u.Revision, u.StoreID
	c.state.at = c.window.Next() // after the difference, which the list has
	c.until = u.Until
	c.filled, c.distrusted, c.dirty = true, false, true
	if again && c.OnRelist != nil {
		c.OnRelist(u.Revision, int(c.Stats.Synthetic.Load()-before))
	}
}

// appendDiff appends the difference between the state and the listed one to the
// window. It reports false if that is impossible: storage went back in time, or
// the state was wrong and there is no newer revision for the corrections.
func (c *cache) appendDiff(listed *tree.View, rev store.Revision) bool {
	if rev < c.revision {
		return false
	}
	events := tree.Diff(c.Schema, c.state.newest(c.window.View()), listed, c.revision, rev, c.now)
	if rev == c.revision && len(events) > 0 {
		return false
	}
	c.window.AppendDiff(events, c.revision, rev, c.now)
	c.Stats.Synthetic.Add(uint64(len(events)))
	c.countUnseen(events, rev)
	return true
}

// countUnseen counts the revisions up to rev without an event, if each had one. Events
// emitted at them are lost, which the next emitted event reports as a gap.
func (c *cache) countUnseen(events []store.Event, rev store.Revision) {
	switch {
	case !c.Emits || rev == c.revision:
		return
	case !c.Contiguous:
		c.handle.gap = true
		return
	}
	unseen, last := uint64(rev-c.revision), c.revision
	for _, ev := range events {
		if ev.Revision > last {
			unseen--
			last = ev.Revision
		}
	}
	c.Stats.Unseen.Add(unseen)
	c.handle.gap = c.handle.gap || unseen > 0
}

// distrust makes the cache Pending, because of cause, until the Reflector has
// listed again.
func (c *cache) distrust(cause error) {
	c.distrusted = true
	c.setReadiness(c.readiness.distrusted(c.now, cause))
	c.Relist(reflector.Distrusted)
}
