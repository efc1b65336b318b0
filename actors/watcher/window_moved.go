package watcher

import (
	"cmp"
	"context"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/window"
)

// WindowStatus is the status of a watch when the window moves on.
type WindowStatus uint8

const (
	// Following: it has read all of its stream and does not need the window.
	Following WindowStatus = iota
	// Reading: its next event is in the window, or in its backlog.
	Reading
	// Expired: events for it have left the window, so it must end.
	Expired
)

// WindowMoved tells the watch that the window is about to start at next.First: prev
// is the last snapshot that may still have its position. The watch skips events that
// are not for it, and keeps up to Buffer of its events that leave the window. If
// those are all, it continues after them. Otherwise a Conflate watch keeps the state
// after them, to be conflated from, and any other watch ends after them with
// ErrExpired, or at once if its initial state is incomplete; WindowMoved then returns
// Expired, once.
func (m *Member) WindowMoved(prev, next *window.Snapshot) WindowStatus {
	w := m.watch()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.reading() {
		return Reading
	}
	w.keepInHand(prev, next)
	first := next.Window.First()
	switch {
	case w.cur.backlog.decided():
		w.cur.backlog.first = first
		return Reading
	case w.cur.following():
		return Following
	case !w.cur.leftBehind(w.stream, prev, first):
		return Reading
	}
	b := w.cur.backlog
	if b == nil {
		b = &backlog{}
	}
	b.first = first
	reached := cmp.Or(store.Revision(w.resume.Load()), w.cur.rev) // the latter behind an initial state
	if w.keep(b, prev) || w.conflateFrom(b, prev) {
		w.cur.backlog = b
		return Reading
	}
	if w.cur.initial != nil {
		// The rest of the state is useless without the changes after it.
		b, reached = &backlog{}, w.cur.initial.revision
	}
	w.expire(b, reached, next)
	return Expired
}

// keepInHand keeps what the consumer has in hand when that leaves with prev. It looks for that
// once for each time that the consumer takes events.
func (w *Watch) keepInHand(prev, next *window.Snapshot) {
	resume := store.Revision(w.resume.Load())
	if resume >= w.cur.rev || resume >= next.Window.Floor() || w.flags.has(emptyHanded) {
		return
	}
	if events := w.inHand(prev); len(events) > 0 {
		w.obtainExtras().inHand = events
	} else {
		w.flags.set(emptyHanded)
	}
}

// keep moves the watch's events that leave with prev to the backlog, up to the
// watch's buffer, and reports whether these are all. The cursor is then after the
// last of them. Events appended and trimmed between prev and the next window are not
// available.
func (w *Watch) keep(b *backlog, prev *window.Snapshot) (complete bool) {
	for w.cur.pos < b.first {
		events, err := w.cur.readWindow(w.stream, prev)
		if err == errUnfinished {
			continue
		}
		if len(events) == 0 {
			return err == nil && w.cur.pos >= b.first
		}
		room := max(int(w.buffer)-b.size, 0)
		if len(events) > room {
			w.keepPart(b, events, room, prev)
			return w.cur.pos >= b.first // the rest has not left
		}
		b.keep(events)
	}
	return true
}

// keepPart keeps as many of the events as there is room for, in whole revisions, and
// moves the cursor back to the end of these.
func (w *Watch) keepPart(b *backlog, events []store.Event, room int, prev *window.Snapshot) {
	n := wholeRevisions(events, room)
	if n > room {
		n = 0
	}
	b.keep(events[:n:n])
	w.cur.rev = events[n].Revision - 1
	w.cur.pos, w.cur.node = prev.Window.After(w.cur.rev), nil
}

// conflateFrom prepares a Conflate watch to be conflated from the end of its backlog.
func (w *Watch) conflateFrom(b *backlog, prev *window.Snapshot) bool {
	if w.policy != Conflate {
		return false
	}
	base, err := prev.StateBefore(context.Background(), w.cur.pos)
	b.base, w.cur.node = base, nil
	return err == nil
}

// expire has the watch end after its backlog. The error names the revision of the
// last event in that or, if it is empty, the revision reached.
func (w *Watch) expire(b *backlog, reached store.Revision, next *window.Snapshot) {
	b.end = &store.ExpiredError{Requested: b.last(reached), Oldest: next.Window.Floor()}
	w.cur.release()
	w.cur.backlog = b
}
