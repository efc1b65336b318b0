package watcher

import (
	"sort"

	"github.com/watchmill/watchmill/store"
)

// batchSize is how many events a prelude hands out at once: a chunk's worth.
const batchSize = 256

// cursor is where a watch stands and how it reads on. It is plain data; its
// owner guards it.
type cursor struct {
	// pos is the position in the window: everything before it has been taken, or
	// is not for this watch. While the cursor follows a stream in which nothing
	// happens it may lag, for nothing is lost by that.
	pos store.Seq
	// rev is the revision of the last event before pos that was looked at.
	rev store.Revision
	// skip is the revision at or below which events are left out although they
	// stand behind pos: the watch starts in the future.
	skip store.Revision
	// node is the stream's node whose events have all been taken, if the cursor
	// follows the stream; nil if it scans the window.
	node *node
	// prelude is what comes before the window, nil if nothing.
	prelude *prelude
}

// read takes the next events of snap for a watch of stream s: none when the
// cursor has caught up. It returns a [*store.ExpiredError] if the window no
// longer holds its position. The slice is shared: it must not be changed.
func (c *cursor) read(s *Stream, snap *store.Snapshot) ([]store.Event, error) {
	if events := c.readPrelude(s, snap); len(events) > 0 {
		return events, nil
	}
	if c.prelude != nil {
		return nil, c.prelude.end
	}
	if events := c.follow(snap.Window.Next()); len(events) > 0 {
		return events, nil
	}
	if c.node == nil {
		return c.scan(s, snap)
	}
	c.caughtUpWith(snap)
	return nil, nil
}

// scan reads the window from the cursor's position up to the first events that
// are for this watch.
func (c *cursor) scan(s *Stream, snap *store.Snapshot) ([]store.Event, error) {
	for c.pos < snap.Window.Next() {
		raw, ok := snap.Window.Read(c.pos)
		if !ok {
			return nil, &store.ExpiredError{Requested: c.rev, Oldest: snap.Window.Floor()}
		}
		if events := c.advance(s, raw); len(events) > 0 {
			return events, nil
		}
	}
	c.caughtUpWith(snap)
	c.join(s)
	return nil, nil
}

// advance moves over raw, the window's next stretch, and returns what of it is
// for this watch.
func (c *cursor) advance(s *Stream, raw []store.Event) []store.Event {
	events := raw
	if !s.everything {
		events = s.evaluate(c.pos, raw)
	}
	c.pos += store.Seq(len(raw))
	c.rev = max(c.rev, raw[len(raw)-1].Revision)
	return after(events, c.skip)
}

// join has a cursor that has caught up with the window follow its stream, unless
// the dispatcher has evaluated more than the window shows yet: then the next
// snapshot has more to scan.
//
// Nothing falls between. The position is at most where the dispatcher's latest
// round began or ended, and that round's matches are in a node behind the tail
// or, if the position is its end, have been scanned.
func (c *cursor) join(s *Stream) {
	if s.everything {
		return
	}
	if tail := s.tail.Load(); tail.to <= c.pos {
		c.node = tail
	}
}

// follow takes the next node's events, as far as the window that is published
// ends at position end: a round may still fail, and is then read from the window.
// It does not matter if the node was cut: who stands on one keeps those behind
// it.
func (c *cursor) follow(end store.Seq) []store.Event {
	for c.node != nil {
		next := c.node.next.Load()
		if next == nil || next.to > end {
			return nil
		}
		c.node = next
		c.pos = max(c.pos, next.to)
		if events := after(next.events, c.skip); len(events) > 0 {
			c.rev = max(c.rev, events[len(events)-1].Revision)
			return events
		}
	}
	return nil
}

// exhausted reports whether nothing in snap, which was loaded before, is still to
// be looked at.
func (c *cursor) exhausted(snap *store.Snapshot) bool {
	if c.node == nil {
		return c.pos >= snap.Window.Next()
	}
	next := c.node.next.Load()
	return next == nil || next.to > snap.Window.Next()
}

// caughtUpWith moves a cursor that has taken all that is for it to the end of
// snap, which was loaded before: nothing up to there is still to come.
func (c *cursor) caughtUpWith(snap *store.Snapshot) {
	c.pos = max(c.pos, snap.Window.Next())
	c.rev = max(c.rev, snap.Window.Revision())
}

// leave takes the cursor off its stream, to go on in the window. At is a
// position that the stream has been evaluated up to.
func (c *cursor) leave(at store.Seq) {
	if c.node == nil {
		return
	}
	if next := c.node.next.Load(); next != nil {
		at = next.from
	}
	c.pos = max(c.pos, at)
	c.node = nil
}

// following reports whether the cursor has taken all of its stream, so that no
// window can leave it behind.
func (c *cursor) following() bool { return c.node != nil && c.node.next.Load() == nil }

// overrun reports whether a window that starts at first leaves behind something
// that is for the cursor. Prev is the last one that may still hold it. What is
// not for the cursor it passes by.
func (c *cursor) overrun(s *Stream, prev *store.Snapshot, first store.Seq) bool {
	if c.node != nil {
		if next := c.node.next.Load(); next != nil {
			c.pos = max(c.pos, next.from)
		}
		if c.node.cut && c.pos >= first {
			c.node = nil
		}
		return c.pos < first
	}
	return c.pos < first && !c.passBy(s, prev, first)
}

// passBy moves the cursor up to position first if nothing before that is for
// it, and reports whether it is there.
func (c *cursor) passBy(s *Stream, prev *store.Snapshot, first store.Seq) bool {
	for c.pos < first {
		raw, ok := prev.Window.Read(c.pos)
		if !ok || len(raw) == 0 {
			return false
		}
		ahead := *c
		if len(ahead.advance(s, raw)) > 0 {
			return false
		}
		*c = ahead
	}
	return true
}

// after returns the events with a revision above rev. Events are in revision
// order, so it is a suffix.
func after(events []store.Event, rev store.Revision) []store.Event {
	if len(events) == 0 || events[0].Revision > rev {
		return events
	}
	return events[sort.Search(len(events), func(i int) bool { return events[i].Revision > rev }):]
}
