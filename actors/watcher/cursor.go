package watcher

import (
	"sort"

	"github.com/watchmill/watchmill/store"
)

// batchSize is how many events a prelude hands out at once: a chunk's worth.
const batchSize = 256

// cursor is where a watch stands and how it reads on. It is plain data; its
// owner guards it.
type cursor[T any] struct {
	// pos is the position in the window: everything before it has been taken.
	pos store.Seq
	// rev is the revision of the last event before pos.
	rev store.Revision
	// skip is the revision at or below which events are left out although they
	// stand behind pos: the watch starts in the future, or the stream's next node
	// overlaps what was scanned. It never splits a group of equal revisions.
	skip store.Revision
	// node is the stream's node whose events have all been taken, if the cursor
	// follows the stream; nil if it scans the window.
	node *node[T]
	// prelude is what comes before the window, nil if nothing.
	prelude *prelude[T]
}

// read takes the next events of snap for a watch of stream s: none when the
// cursor has caught up. It returns a [*store.ExpiredError] if the window no
// longer holds its position. The slice is shared: it must not be changed.
func (c *cursor[T]) read(s *Stream[T], snap *store.Snapshot[T]) ([]store.Event[T], error) {
	if events := c.readPrelude(s.filter, snap); len(events) > 0 {
		return events, nil
	}
	if c.prelude != nil {
		return nil, c.prelude.end
	}
	if events := c.follow(); len(events) > 0 {
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
func (c *cursor[T]) scan(s *Stream[T], snap *store.Snapshot[T]) ([]store.Event[T], error) {
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
	if s.everything {
		return nil, nil
	}
	// The dispatcher may have evaluated more than snap holds; then the next
	// snapshot has more to scan.
	if tail := s.tail.Load(); tail.to <= c.pos {
		c.node = tail
		c.skip = max(c.skip, c.rev)
	}
	return nil, nil
}

// advance moves over raw, the window's next stretch, and returns what of it is
// for this watch.
func (c *cursor[T]) advance(s *Stream[T], raw []store.Event[T]) []store.Event[T] {
	events := raw
	if !s.everything {
		events = s.evaluate(c.pos, raw)
	}
	c.pos += store.Seq(len(raw))
	c.rev = max(c.rev, raw[len(raw)-1].Revision)
	return after(events, c.skip)
}

// follow takes the next node's events. A cut node sends the cursor back to the
// window.
func (c *cursor[T]) follow() []store.Event[T] {
	for c.node != nil {
		next := c.node.next.Load()
		switch next {
		case nil:
			return nil
		case c.node:
			c.node = nil
			return nil
		}
		events := after(next.events, c.skip)
		c.node = next
		c.pos = max(c.pos, next.to)
		if n := len(events); n > 0 {
			c.rev = max(c.rev, events[n-1].Revision)
			return events
		}
	}
	return nil
}

// caughtUpWith moves a cursor that has taken all that is for it to the end of
// snap, which was loaded before: nothing up to there is still to come.
func (c *cursor[T]) caughtUpWith(snap *store.Snapshot[T]) {
	c.pos = max(c.pos, snap.Window.Next())
	c.rev = max(c.rev, snap.Window.Revision())
	if c.node != nil {
		c.skip = max(c.skip, c.rev)
	}
}

// after returns the events with a revision above rev. Events are in revision
// order, so it is a suffix.
func after[T any](events []store.Event[T], rev store.Revision) []store.Event[T] {
	if len(events) == 0 || events[0].Revision > rev {
		return events
	}
	return events[sort.Search(len(events), func(i int) bool { return events[i].Revision > rev }):]
}
