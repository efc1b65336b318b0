package watcher

import (
	"slices"
	"sort"

	"github.com/watchmill/watchmill/store"
)

// cursor is where a watch stands and how it reads on. It is plain data; its
// owner guards it. It hands out whole revisions: what it returned last is all
// that its revision has for the watch.
type cursor struct {
	// pos is the position in the window: everything before it has been taken, or
	// is not for this watch. While the cursor follows a stream in which nothing
	// happens it may lag, for nothing is lost by that.
	pos store.Seq
	// rev is the revision of the last event before pos that was looked at.
	rev store.Revision
	// node is the stream's node whose events have all been taken, if the cursor
	// follows the stream; nil if it scans the window.
	node *node
	// initial and backlog come before the window, in this order; nil for nothing.
	initial *initialEvents
	backlog *backlog
}

// read takes the next events of snap for a watch of stream s: none when the
// cursor has caught up, or must be conflated first. It returns the error that
// the watch ends with behind its backlog, and a [*store.ExpiredError] if the
// window no longer holds its position. The slice is shared: it must not be
// changed.
func (c *cursor) read(s *Stream, snap *store.Snapshot) ([]store.Event, error) {
	if events := c.readInitial(s); len(events) > 0 {
		return events, nil
	}
	if c.backlog != nil {
		events, over, err := c.readBacklog(snap)
		if len(events) > 0 || err != nil || !over {
			return events, err
		}
	}
	return c.readWindow(s, snap)
}

// readInitial takes the next events of the initial state.
func (c *cursor) readInitial(s *Stream) []store.Event {
	if c.initial == nil {
		return nil
	}
	events := c.initial.next(s.filter)
	if len(events) == 0 {
		c.initial = nil
	}
	return events
}

// readBacklog takes the next events of the backlog. Over reports whether it has
// been read, and the window goes on where it ends.
func (c *cursor) readBacklog(snap *store.Snapshot) (events []store.Event, over bool, err error) {
	if events := c.backlog.next(); len(events) > 0 {
		return events, false, nil
	}
	if c.backlog.end != nil {
		return nil, false, c.backlog.end
	}
	if c.backlog.base != nil && c.pos < c.windowStart(snap) {
		return nil, false, nil
	}
	c.backlog = nil
	return nil, true, nil
}

// windowStart returns where the window starts that is published or about to be.
func (c *cursor) windowStart(snap *store.Snapshot) store.Seq {
	return max(snap.Window.First(), c.backlog.first)
}

// readWindow takes the next events of the stream, if the cursor follows it, or
// of the window.
func (c *cursor) readWindow(s *Stream, snap *store.Snapshot) ([]store.Event, error) {
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
		raw, ok := stretch(snap.Window, c.pos)
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

// stretch returns the window's events from a position to the end of a chunk, but
// for a revision that goes on in the next one. If that is all there is, it
// returns that revision to its end. Ok is false if the window has no longer the
// position.
func stretch(window store.WindowView, at store.Seq) (events []store.Event, ok bool) {
	events, ok = window.Read(at)
	if len(events) == 0 {
		return events, ok
	}
	last := events[len(events)-1].Revision
	rest, _ := window.Read(at + store.Seq(len(events)))
	if len(rest) == 0 || rest[0].Revision != last {
		return events, true
	}
	if n := sort.Search(len(events), func(i int) bool { return events[i].Revision >= last }); n > 0 {
		return events[:n:n], true
	}
	events = slices.Clone(events)
	for len(rest) > 0 && rest[0].Revision == last {
		n := sort.Search(len(rest), func(i int) bool { return rest[i].Revision > last })
		events = append(events, rest[:n]...)
		rest, _ = window.Read(at + store.Seq(len(events)))
	}
	return events, true
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
	return events
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
// It does not matter if the node was cut: a cursor that stands on one keeps those
// behind it.
func (c *cursor) follow(end store.Seq) []store.Event {
	for c.node != nil {
		next := c.node.next.Load()
		if next == nil || next.to > end {
			return nil
		}
		c.node = next
		c.pos = max(c.pos, next.to)
		if events := next.events; len(events) > 0 {
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

// ahead returns how many events of snap lie ahead. If the cursor scans the
// window, those that are not for the watch count, too.
func (c *cursor) ahead(s *Stream, snap *store.Snapshot) uint64 {
	var n uint64
	if c.backlog != nil {
		n = uint64(c.backlog.size)
	}
	if c.node != nil {
		return n + s.tail.Load().count - c.node.count
	}
	return n + uint64(max(snap.Window.Next(), c.pos)-c.pos)
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

// release lets go of everything that the cursor holds.
func (c *cursor) release() { c.node, c.initial, c.backlog = nil, nil, nil }

// following reports whether the cursor has taken all of its stream, so that no
// window can leave it behind.
func (c *cursor) following() bool { return c.node != nil && c.node.next.Load() == nil }

// leftBehind reports whether a window that starts at first no longer holds
// something that is for the cursor. Prev is the last one that may still hold it.
// What is not for the cursor it skips.
func (c *cursor) leftBehind(s *Stream, prev *store.Snapshot, first store.Seq) bool {
	if c.node != nil {
		if next := c.node.next.Load(); next != nil {
			c.pos = max(c.pos, next.from)
		}
		if c.node.cut && c.pos >= first {
			c.node = nil
		}
		return c.pos < first
	}
	return c.pos < first && !c.skipIrrelevant(s, prev, first)
}

// skipIrrelevant moves the cursor up to position first if nothing before that is
// for it, and reports whether it is there.
func (c *cursor) skipIrrelevant(s *Stream, prev *store.Snapshot, first store.Seq) bool {
	for c.pos < first {
		raw, ok := stretch(prev.Window, c.pos)
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
