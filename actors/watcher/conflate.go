package watcher

import (
	"slices"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/tree"
	"github.com/watchmill/watchmill/store/window"
)

// gap says which events tell the consumer that earlier ones were left out.
type gap uint8

const (
	// noGap: nothing was left out, or an event has said so.
	noGap gap = iota
	// beforeEmitted: the next emitted value is to be marked AfterGap.
	beforeEmitted
	// beforeAny: so is the next event of any type, also a bookmark. The difference was
	// empty, so that no conflated event says that others were left out.
	beforeAny
)

// mustConflate reports whether the watch's next events have left the window, so that
// it must be conflated, and the window to conflate to is published.
func (c *cursor) mustConflate(snap *window.Snapshot) bool {
	b := c.backlog
	return c.initial == nil && b != nil && b.base != nil && len(b.events) == 0 &&
		c.pos < c.windowStart(snap) && c.pos < snap.Window.Next()
}

// conflation returns a function that conflates the watch to snap: the backlog becomes the
// difference to its base. The function compares the two states without the lock, which the
// caller of conflation holds.
func (w *Watch) conflation(snap *window.Snapshot) func() {
	schema, b, after := w.stream.schema, w.cur.backlog, w.cur.rev
	return func() {
		events := tree.Diff(schema, b.base, snap.State(), after, snap.Revision, snap.At)
		for i := range events {
			events[i].Marks = store.Conflated
		}
		seen := ConvertBatch(schema, w.stream.filter, events)
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.cur.backlog == b { // and the watch has not ended
			w.conflate(snap, seen)
		}
	}
}

// conflate jumps to snap by the events, which are those that the watch sees of the
// difference.
func (w *Watch) conflate(snap *window.Snapshot, seen []store.Event) {
	c := &w.cur
	if left := uint64(snap.Window.Next() - c.pos); left > uint64(len(seen)) {
		w.obtainExtras().lost += left - uint64(len(seen))
		w.gap = beforeEmitted
		if len(seen) == 0 {
			w.gap = beforeAny
		}
	}
	c.backlog = &backlog{base: snap.State(), first: c.backlog.first}
	c.backlog.keep(seen)
	c.pos, c.rev = snap.Window.Next(), max(c.rev, snap.Window.Revision())
}

// markGap marks the events that tell of the gap. The slice is shared with other watches, so
// it is copied then.
func (w *Watch) markGap(events []store.Event) []store.Event {
	shared := true
	for i, ev := range events {
		if !w.tellsOfGap(ev) {
			continue
		}
		if shared {
			events, shared = slices.Clone(events), false
		}
		events[i].Marks |= store.AfterGap
	}
	return events
}

// tellsOfGap reports whether ev, the next event, is to be marked.
func (w *Watch) tellsOfGap(ev store.Event) bool {
	switch was := w.gap; {
	case was == noGap:
		return false
	case ev.Type == store.Emitted:
		w.gap = noGap
		return true
	case was == beforeAny:
		w.gap = beforeEmitted
		return !ev.Is(store.Conflated)
	}
	return false
}
