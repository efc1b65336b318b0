package watcher

import "github.com/watchmill/watchmill/store"

// prelude is what a watch reads before the window: the state it starts with,
// the difference that it is conflated to, or the backlog of one that ends.
type prelude struct {
	// state is handed out in key order, after the key `after`.
	state *store.TreeView
	after string
	// events are handed out as they are, after the state.
	events []store.Event
	// revision is what the prelude is complete at.
	revision store.Revision
	// bookmark: an InitialEnd bookmark at revision closes the prelude.
	bookmark bool
	// base is the state at the cursor's position, for a watch that is conflated
	// if the window overruns it. It pins that state.
	base *store.TreeView
	// first is where the window will start that made base necessary. A consumer
	// may read on before that window is published.
	first store.Seq
	// end, if not nil, ends the watch when the prelude has been read.
	end error
}

// readPrelude takes the next events of the prelude. Without any, the prelude
// is over, or only its end is left.
func (c *cursor) readPrelude(s *Stream, snap *store.Snapshot) []store.Event {
	for c.prelude != nil {
		if events := c.prelude.next(s.filter); len(events) > 0 {
			return events
		}
		if c.prelude.end != nil {
			return nil
		}
		switch {
		case c.prelude.base == nil || c.pos >= max(snap.Window.First(), c.prelude.first):
			c.prelude = nil
			return nil
		case c.pos >= snap.Window.Next():
			return nil // the window that starts behind the cursor is still to come
		}
		c.conflate(s, snap)
	}
	return nil
}

// last returns the revision of the last event, or the given one if there is
// none.
func (p *prelude) last(none store.Revision) store.Revision {
	if n := len(p.events); n > 0 {
		return p.events[n-1].Revision
	}
	return none
}

// beginning reports whether this is, still, the initial state.
func (p *prelude) beginning() bool { return p.state != nil || p.bookmark }

// decided reports whether the prelude says what becomes of the watch if the
// window leaves it behind.
func (p *prelude) decided() bool { return p != nil && (p.base != nil || p.end != nil) }

// done reports whether nothing of the prelude is left to deliver.
func (p *prelude) done() bool {
	return p == nil || p.state == nil && len(p.events) == 0 && !p.bookmark
}

// conflate jumps to snap: the prelude becomes what changed since its base.
func (c *cursor) conflate(s *Stream, snap *store.Snapshot) {
	events := store.Diff(s.schema, c.prelude.base, snap.State, c.rev, snap.Revision, snap.At)
	for i := range events {
		events[i].Marks = store.Conflated
	}
	c.prelude = &prelude{events: ConvertBatch(s.schema, s.filter, events), revision: snap.Revision, base: snap.State, first: c.prelude.first}
	c.pos, c.rev = snap.Window.Next(), max(c.rev, snap.Window.Revision())
}

// next returns the next stretch of the state, the events or the bookmark.
func (p *prelude) next(f *store.Filter) []store.Event {
	if p.state != nil {
		if events := p.nextState(f); len(events) > 0 {
			return events
		}
	}
	if n := min(batchSize, len(p.events)); n > 0 {
		events := p.events[:n:n]
		p.events = p.events[n:]
		return events
	}
	if p.bookmark {
		p.bookmark = false
		return []store.Event{{Type: store.Bookmark, Marks: store.InitialEnd, Revision: p.revision}}
	}
	return nil
}

// nextState returns the next stretch of the state as Added events, and lets go
// of the state at its end.
func (p *prelude) nextState(f *store.Filter) []store.Event {
	var events []store.Event
	for o := range store.Select(p.state, f, p.after) {
		events = append(events, store.Event{Type: store.Added, Marks: store.Initial, Revision: o.Revision, Object: o})
		if len(events) == batchSize {
			p.after = o.Key
			return events
		}
	}
	p.state = nil
	return events
}
