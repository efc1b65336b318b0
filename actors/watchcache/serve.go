package watchcache

import (
	"errors"
	"slices"
	"time"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/dispatcher"
	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/window"
	"github.com/watchmill/watchmill/usercode"
)

// pass passes the watch to the dispatcher if it can start at what is published, and
// reports whether it has. A watch is refused, delayed or told of a future start by the actor
// alone, which may have received more.
func (h *Cache) pass(m Register) bool {
	if !h.Ready() {
		return false
	}
	snap := h.published.Load()
	start, err := m.startAt(snap)
	if err != nil || start.Pending > 0 {
		return false
	}
	if m.Reply == nil { // the caller does not wait
		return h.dispatcher.Tell(m.passed(start, snap))
	}
	return h.dispatcher.Ask(m.passed(start, snap))
}

// register decides where a watch starts and passes it on.
func (c *cache) register(m Register) {
	if err := c.readiness.check(c.now); err != nil {
		if m.Reply == nil && c.readiness.state == Pending {
			c.handle.delay(m)
		} else {
			m.refuse(err)
		}
		return
	}
	c.publish() // the watch starts at the published position
	snap := c.Published.Load()
	start, err := m.startAt(snap)
	if err != nil {
		if m.From.Resumes() {
			c.Stats.ResumesExpired.Add(1) // there is no other reason
		}
		m.refuse(err)
		return
	}
	if !c.Dispatcher.Tell(m.passed(start, snap)) {
		m.refuse(ErrStopped)
	}
}

// passed returns the message that passes the watch to the dispatcher.
func (m Register) passed(start watcher.Start, snap *window.Snapshot) dispatcher.Register {
	return dispatcher.Register{
		Watch: m.Watch.Member(), Filter: m.Filter, Start: start, Deadline: m.Deadline,
		Now: m.From.Now(), AnyEpoch: m.From.Revision == 0, Resumes: m.From.Resumes(), Snapshot: snap, Reply: m.Reply,
	}
}

// delay keeps a registration until the cache is ready. Whenever there is no more room it
// drops the registrations of watches that have ended, so that their number is at most a few
// times that of the watches that wait.
func (h *Cache) delay(m Register) {
	if len(h.delayed) == cap(h.delayed) {
		h.delayed = slices.DeleteFunc(h.delayed, func(m Register) bool { return m.Watch.Member().Ended() })
		h.delayed = slices.Grow(h.delayed, len(h.delayed)+1)
	}
	h.delayed = append(h.delayed, m)
}

// registerDelayed registers the watches that waited until the cache was ready, or refuses them,
// including those behind one whose Notify ends the goroutine.
func (c *cache) registerDelayed() {
	delayed := c.handle.delayed
	c.handle.delayed = nil
	usercode.Each(delayed, c.register)
}

// refuse answers the registration with err, or ends the watch with it if there
// is no Reply.
func (m Register) refuse(err error) {
	switch {
	case m.Reply != nil:
		m.Reply <- err
	case errors.Is(err, ErrStopped):
		m.Watch.Member().End(watcher.ErrEngineClosed)
	default:
		m.Watch.Member().End(err)
	}
}

// startAt decides the position of the watch in a snapshot.
func (m Register) startAt(snap *window.Snapshot) (watcher.Start, error) {
	if m.Timeline != nil && *m.Timeline != snap.Timeline() {
		return watcher.Start{}, &store.ExpiredError{Requested: m.From.Revision, Oldest: snap.Revision}
	}
	return startOf(snap, m.From)
}

// startOf decides the position of a watch in a snapshot's timeline.
func startOf(snap *window.Snapshot, from watcher.From) (watcher.Start, error) {
	now := watcher.Start{Next: snap.Window.Next(), After: snap.Revision}
	switch {
	case from.State && from.Revision > snap.Revision: // storage has gone back since the caller found it there
		return watcher.Start{}, &store.FutureError{Requested: from.Revision, Current: snap.Revision}
	case from.State:
		now.State, now.InitialEnd = snap.State(), from.InitialEnd
		return now, nil
	case from.Last > 0:
		at := max(snap.Window.Since(from.Last), snap.Window.After(snap.Window.Floor()))
		return watcher.Start{Next: at, After: snap.Window.RevisionAt(at)}, nil
	case from.Revision == 0 && (from.NotBefore <= snap.Revision || from.Epoch != snap.Epoch):
		return now, nil
	case from.Revision == 0:
		return watcher.Start{Pending: from.NotBefore}, nil
	case from.Revision > snap.Revision:
		return watcher.Start{Pending: from.Revision}, nil
	}
	at, err := snap.Window.Seek(from.Revision)
	return watcher.Start{Next: at, After: from.Revision}, err
}

// wait answers at once if the cache is ready and fresh enough, else later.
func (c *cache) wait(ctx *actors.Context, m Wait) {
	switch {
	case c.readiness.state == Stopped:
		m.Reply <- ErrStopped
	case c.readiness.state == Ready && c.revision >= m.Revision:
		c.publish()
		m.Reply <- nil
	case !m.Until.After(c.now) || c.readiness.state == Ended:
		m.Reply <- c.tooLate(m.Revision)
	default:
		c.waiters.add(waiter{revision: m.Revision, until: m.Until, done: m.Done, reply: m.Reply})
		c.armWaitsAt(ctx, m.Until)
		c.handle.waiting.Store(true)
		if c.OnBehind != nil {
			c.OnBehind()
		}
	}
}

// tooLate returns the error of a waiter that timed out.
func (c *cache) tooLate(rev store.Revision) error {
	if err := c.readiness.check(c.now); err != nil {
		return err
	}
	return &store.FutureError{Requested: rev, Current: c.revision}
}

// waitSpacing is the least time between two scans for timed-out waiters, since
// each scan visits all waiters.
const waitSpacing = 10 * time.Millisecond

// answerDue answers timed-out waiters, but first those that updates of this turn satisfy,
// and arms the timer for the next one. If the clock was set back meanwhile, none is due
// and the timer is armed again.
func (c *cache) answerDue(ctx *actors.Context) {
	clock.Stop(&c.waitTimer)
	c.publish()
	c.waiters.due(c.now, c.tooLate)
	c.armWaits(ctx)
}

// armWaits arms the timer for the waiter that times out first.
func (c *cache) armWaits(ctx *actors.Context) {
	if at, ok := c.waiters.next(); ok {
		if soonest := c.now.Add(waitSpacing); at.Before(soonest) {
			at = soonest
		}
		c.armWaitsAt(ctx, at)
	}
}

// armWaitsAt makes the timer fire at that time or earlier.
func (c *cache) armWaitsAt(ctx *actors.Context, at time.Time) {
	if c.waitTimer != nil {
		if !at.Before(c.waitsDue) {
			return
		}
		c.waitTimer.Stop()
	}
	c.waitsDue = at
	c.waitTimer = ctx.Clock().AfterFunc(at.Sub(c.now), func() { c.handle.send(waiterDue{}) })
}
