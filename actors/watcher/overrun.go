package watcher

import (
	"context"

	"github.com/watchmill/watchmill/store"
)

// WindowStatus is where a watch is when the window moves on.
type WindowStatus uint8

const (
	// Following: it has taken all of its stream and does not need the window.
	Following WindowStatus = iota
	// Reading: what is next for it is in the window, or kept.
	Reading
	// Lost: something for it has left the window, so it is to end.
	Lost
)

// WindowMoved tells the watch that the window is about to start at next.First:
// prev is the last snapshot that may still hold its position. What is not for it
// the watch skips. What is and leaves the window the watch keeps, as many events
// as its buffer may hold. If those are all that leave, it goes on behind them.
// Otherwise a Conflate watch keeps the state after them, to be conflated from,
// and any other ends after them with ErrExpired: then, once, it is Lost.
func (m *Member) WindowMoved(prev, next *store.Snapshot) WindowStatus {
	w := m.watch()
	w.mu.Lock()
	defer w.mu.Unlock()
	first := next.Window.First()
	switch {
	case !w.reading():
		return Reading
	case w.cur.backlog.decided():
		w.cur.backlog.first = max(w.cur.backlog.first, first)
		return Reading
	case w.cur.following():
		return Following
	case !w.cur.leftBehind(w.stream, prev, first):
		return Reading
	case w.cur.initial != nil:
		// Without the changes that follow, the rest of the state is of no use.
		w.expire(&backlog{}, w.cur.initial.revision, next)
		return Lost
	}
	b := w.cur.backlog
	if b == nil {
		b = &backlog{}
	}
	b.first = first
	if w.keep(b, prev) || w.conflateFrom(b, prev) {
		w.cur.backlog = b
		return Reading
	}
	w.expire(b, store.Revision(w.resume.Load()), next)
	return Lost
}

// keep moves to the backlog what leaves with prev, up to the watch's buffer, and
// reports whether that is all. The cursor then stands behind the last event.
// Events that came and went between prev and the next window are not to be had.
func (w *Watch) keep(b *backlog, prev *store.Snapshot) (complete bool) {
	for w.cur.pos < b.first {
		events, err := w.cur.readWindow(w.stream, prev)
		if len(events) == 0 {
			return err == nil && w.cur.pos >= b.first
		}
		room := max(int(w.buffer)-b.size, 0)
		if len(events) > room {
			w.keepPart(b, events, room, prev)
			return false
		}
		b.keep(events)
	}
	return true
}

// keepPart keeps as many of the events as there is room for, in whole revisions,
// and moves the cursor back behind them.
func (w *Watch) keepPart(b *backlog, events []store.Event, room int, prev *store.Snapshot) {
	n := wholeRevisions(events, room)
	if n > room {
		n = 0
	}
	b.keep(events[:n:n])
	w.cur.rev = events[n].Revision - 1
	w.cur.pos, w.cur.node = prev.Window.After(w.cur.rev), nil
}

// conflateFrom readies a Conflate watch to be conflated from where its backlog
// ends.
func (w *Watch) conflateFrom(b *backlog, prev *store.Snapshot) bool {
	if w.policy != Conflate {
		return false
	}
	base, err := prev.StateBefore(context.Background(), w.cur.pos)
	b.base, w.cur.node = base, nil
	return err == nil
}

// expire ends the watch after what the backlog has kept, or if that is nothing,
// at the revision where its consumer stands.
func (w *Watch) expire(b *backlog, stands store.Revision, next *store.Snapshot) {
	b.end = &store.ExpiredError{Requested: b.last(stands), Oldest: next.Window.Floor()}
	w.cur.release()
	w.cur.backlog = b
}

// mustConflate reports whether what is next for the watch has left the window,
// so that it is to be conflated, and the window that it is conflated to is
// published.
func (c *cursor) mustConflate(snap *store.Snapshot) bool {
	b := c.backlog
	return c.initial == nil && b != nil && b.base != nil && len(b.events) == 0 &&
		c.pos < c.windowStart(snap) && c.pos < snap.Window.Next()
}

// conflate jumps to snap: the backlog becomes what changed since its base.
func (w *Watch) conflate(snap *store.Snapshot) {
	c, b := &w.cur, w.cur.backlog
	events := store.Diff(w.stream.schema, b.base, snap.State, c.rev, snap.Revision, snap.At)
	for i := range events {
		events[i].Marks = store.Conflated
	}
	seen := ConvertBatch(w.stream.schema, w.stream.filter, events)
	if left := uint64(snap.Window.Next() - c.pos); left > uint64(len(seen)) {
		w.more().lost += left - uint64(len(seen))
		w.untold = true
	}
	c.backlog = &backlog{base: snap.State, first: b.first}
	c.backlog.keep(seen)
	c.pos, c.rev = snap.Window.Next(), max(c.rev, snap.Window.Revision())
}

// tell marks the first emitted value of the events, if some before it may have
// been left out.
func (w *Watch) tell(events []store.Event) []store.Event {
	for i, ev := range events {
		if ev.Type == store.Emitted {
			w.untold = false
			if ev.Is(store.AfterGap) {
				return events
			}
			marked := append(events[:0:0], events...)
			marked[i].Marks |= store.AfterGap
			return marked
		}
	}
	return events
}
