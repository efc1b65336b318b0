package watcher

import (
	"errors"
	"slices"
	"sort"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/window"
)

// cursor is the position of a watch and its way of reading on. It is plain data,
// guarded by its owner. It returns whole revisions: a batch has all events of its
// last revision that are for the watch.
type cursor struct {
	// pos is the position in the window: everything before it has been read, or is
	// not for this watch. It may lag while the cursor follows a stream without
	// events.
	pos window.Seq
	// rev is the revision of the last event before pos that was examined.
	rev store.Revision
	// node is the stream's last node that has been read, if the cursor follows the
	// stream; nil if it scans the window.
	node *node
	// initial and backlog come before the window, in this order; nil for nothing.
	initial *initialEvents
	backlog *backlog
}

// stepSize is how many objects or events a cursor examines, at most, before it says
// errUnfinished: less than a millisecond, for which the dispatcher may have to wait for it.
const stepSize = 8192

// errUnfinished: the cursor has found no event yet, but has not caught up. Read again.
var errUnfinished = errors.New("there is more to examine")

// read returns the next events of snap for a watch of stream s: none when the
// cursor has caught up, or must be conflated first. It returns the error that ends
// the watch after its backlog, a [*store.ExpiredError] if the window no longer
// has its position, and [errUnfinished]. The slice is shared: it must not be changed.
func (c *cursor) read(s *Stream, snap *window.Snapshot) ([]store.Event, error) {
	if events, err := c.readInitial(s, snap); len(events) > 0 || err != nil {
		return events, err
	}
	if c.backlog != nil {
		events, over, err := c.readBacklog(snap)
		if len(events) > 0 || err != nil || !over {
			return events, err
		}
	}
	return c.readWindow(s, snap)
}

// readInitial returns the next events of the initial state. With the last of them the cursor comes
// to the window, if it can: the consumer may take long with them, or never read again.
func (c *cursor) readInitial(s *Stream, snap *window.Snapshot) ([]store.Event, error) {
	if c.initial == nil {
		return nil, nil
	}
	events, err := c.initial.next(s.filter)
	if c.initial.done() {
		c.initial = nil
		if c.backlog != nil && len(c.backlog.events) == 0 {
			c.passBacklog(snap)
		}
	}
	return events, err
}

// readBacklog returns the next events of the backlog. over reports whether it has
// been read and the window continues from its end.
func (c *cursor) readBacklog(snap *window.Snapshot) (events []store.Event, over bool, err error) {
	if events := c.backlog.next(); len(events) > 0 {
		return events, false, nil
	}
	if c.backlog.end != nil {
		return nil, false, c.backlog.end
	}
	return nil, c.passBacklog(snap), nil
}

// passBacklog drops a backlog that has neither events nor an end, if the window continues from
// there, which it reports.
func (c *cursor) passBacklog(snap *window.Snapshot) bool {
	if c.backlog.base != nil && c.pos < c.windowStart(snap) {
		return false
	}
	c.backlog = nil
	return true
}

// windowStart returns the start of the window that is published or about to be.
func (c *cursor) windowStart(snap *window.Snapshot) window.Seq {
	return max(snap.Window.First(), c.backlog.first)
}

// readWindow returns the next events of the stream, if the cursor follows it, or
// of the window.
func (c *cursor) readWindow(s *Stream, snap *window.Snapshot) ([]store.Event, error) {
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
func (c *cursor) scan(s *Stream, snap *window.Snapshot) ([]store.Event, error) {
	for start := c.pos; c.pos < snap.Window.Next(); {
		raw, ok := readWhole(&snap.Window, c.pos)
		if !ok {
			return nil, &store.ExpiredError{Requested: c.rev, Oldest: snap.Window.Floor()}
		}
		if events := c.advance(s, raw); len(events) > 0 {
			return events, nil
		}
		if c.pos-start >= stepSize && c.pos < snap.Window.Next() {
			return nil, errUnfinished
		}
	}
	c.caughtUpWith(snap)
	c.join(s)
	return nil, nil
}

// readWhole returns the window's events from a position to the end of the chunk, in
// whole revisions: it leaves out a last revision that continues in the next chunk or, if
// there is no other, returns all of it. ok is false if the window no longer has the
// position.
func readWhole(w *window.View, at window.Seq) (events []store.Event, ok bool) {
	events, ok = w.Read(at)
	if len(events) == 0 {
		return events, ok
	}
	end := at + window.Seq(len(events))
	if end == w.Next() {
		return events, true
	}
	last := events[len(events)-1].Revision
	rest, _ := w.Read(end)
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
		rest, _ = w.Read(at + window.Seq(len(events)))
	}
	return events, true
}

// advance moves over raw, the window's next events, and returns those for this
// watch.
func (c *cursor) advance(s *Stream, raw []store.Event) []store.Event {
	events := raw
	if !s.everything {
		events = s.evaluate(c.pos, raw)
	}
	c.pos += window.Seq(len(raw))
	c.rev = max(c.rev, raw[len(raw)-1].Revision)
	return events
}

// join makes a cursor that has caught up with the window follow its stream, unless
// the dispatcher has evaluated events that are not published yet: then the cursor
// scans those in the next snapshot.
//
// No event is missed: the position is at most the start or the end of the
// dispatcher's latest round. That round's matches are in a node after the tail, or,
// if the position is its end, have been scanned.
func (c *cursor) join(s *Stream) {
	if s.everything {
		return
	}
	if tail := s.tail.Load(); tail.to <= c.pos {
		c.node = tail
	}
}

// follow returns the next node's events, unless they are beyond end, the end of the
// published window: a round may still fail, and is then read from the window. The
// node may have been cut: a cursor on a node keeps the later ones alive.
func (c *cursor) follow(end window.Seq) []store.Event {
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

// exhausted reports whether the cursor has examined all of snap.
func (c *cursor) exhausted(snap *window.Snapshot) bool {
	if c.node == nil {
		return c.pos >= snap.Window.Next()
	}
	next := c.node.next.Load()
	return next == nil || next.to > snap.Window.Next()
}

// ahead returns how many events of snap are ahead of the cursor. If the cursor scans
// the window, this includes events that are not for the watch.
func (c *cursor) ahead(s *Stream, snap *window.Snapshot) uint64 {
	var n uint64
	if c.backlog != nil {
		n = uint64(c.backlog.size)
	}
	if c.node != nil {
		return n + s.tail.Load().count - c.node.count
	}
	return n + uint64(max(snap.Window.Next(), c.pos)-c.pos)
}

// caughtUpWith moves a cursor that has read all its events to the end of snap.
func (c *cursor) caughtUpWith(snap *window.Snapshot) {
	c.pos = max(c.pos, snap.Window.Next())
	c.rev = max(c.rev, snap.Window.Revision())
}

// leave makes the cursor leave its stream and continue in the window. The stream has
// been evaluated up to position at.
func (c *cursor) leave(at window.Seq) {
	if c.node == nil {
		return
	}
	if next := c.node.next.Load(); next != nil {
		at = next.from
	}
	c.pos = max(c.pos, at)
	c.node = nil
}

// release drops the cursor's references.
func (c *cursor) release() { c.node, c.initial, c.backlog = nil, nil, nil }

// following reports whether the cursor has read all of its stream, so that it does
// not need the window.
func (c *cursor) following() bool { return c.node != nil && c.node.next.Load() == nil }

// leftBehind reports whether a window that starts at first no longer has an event
// for the cursor. prev is the last snapshot that may still have it. The cursor skips
// events that are not for it.
func (c *cursor) leftBehind(s *Stream, prev *window.Snapshot, first window.Seq) bool {
	if c.node != nil {
		next := c.node.next.Load() // not nil, or the cursor would be following
		c.pos = max(c.pos, next.from)
		if next.cut && c.pos >= first {
			c.node = nil
		}
		return c.pos < first
	}
	return c.pos < first && !c.skipIrrelevant(s, prev, first)
}

// skipIrrelevant moves the cursor to position first if no event before that is for
// it, and reports whether it did.
func (c *cursor) skipIrrelevant(s *Stream, prev *window.Snapshot, first window.Seq) bool {
	for c.pos < first {
		raw, ok := readWhole(&prev.Window, c.pos)
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
