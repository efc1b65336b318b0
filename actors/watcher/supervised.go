package watcher

import (
	"context"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/store"
)

// This file is what the dispatcher asks of a watch and does to it.

// Box returns the watcher's mailbox.
func (w *Watch) Box() *actors.WakeBox { return &w.box }

// Stream returns the stream that the watch was begun on.
func (w *Watch) Stream() *Stream { return w.stream }

// Options returns what the watch was made with.
func (w *Watch) Options() Options {
	o := Options{Policy: w.policy, Buffer: int(w.buffer), Bookmarks: w.bookmarks}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rare != nil {
		o.Deadline = w.rare.deadline
	}
	return o
}

// Handled reports whether the watch has a handler rather than being pulled.
func (w *Watch) Handled() bool { return w.handler != nil }

// OnPool reports whether the watcher's turns run on the pool: they do unless a
// handler may block.
func (w *Watch) OnPool() bool { return w.onPool }

// Armed reports whether the watch has caught up and its consumer asks for more,
// so that a wake is of use.
func (w *Watch) Armed() bool { return w.armed.Load() }

// Disarm reports whether the watch was armed, and if so takes that upon the
// caller: it must wake the watch. One whose consumer has gone meanwhile stays
// disarmed, so that it can be told from one that waits.
func (w *Watch) Disarm() bool { return w.armed.Load() && w.armed.CompareAndSwap(true, false) }

// Ended reports whether the watch has ended.
func (w *Watch) Ended() bool { return w.ended.Load() }

// Behind reports whether, with next the end of the newest window, the watch
// lags more than its buffer.
func (w *Watch) Behind(next store.Seq) bool {
	count, taken := w.stream.count(next), w.taken.Load()
	return count > taken && count-taken > uint64(w.buffer)
}

// SetStalled calls the watch stalled until it has caught up. It reports whether
// it was not before.
func (w *Watch) SetStalled() bool { return w.flags.set(stalled) }

// RequestBookmark makes the watch deliver a bookmark as soon as it has caught
// up. It needs a wake.
func (w *Watch) RequestBookmark() { w.flags.set(bookmarkDue) }

// OwesInitialEnd reports whether the bookmark that closes the initial state is
// still to be delivered.
func (w *Watch) OwesInitialEnd() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cur.prelude != nil && w.cur.prelude.bookmark
}

// leaveStream takes the watch off its stream, which has been evaluated up to
// position at.
func (w *Watch) leaveStream(at store.Seq) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cur.leave(at)
}

// Standing is where a watch is when the window moves on.
type Standing uint8

const (
	// Following: it has taken all of its stream and does not need the window.
	Following Standing = iota
	// Reading: what is next for it is in the window, or kept elsewhere.
	Reading
	// Lost: something for it has left the window, so it is to end.
	Lost
)

// Overrun tells the watch that the window is about to start at next.First: prev
// is the last snapshot that may still hold its position. What is not for it the
// watch passes by. If something is, it keeps as many events as its buffer may
// hold. If those are all that there are, it goes on behind them. Otherwise a
// Conflate watch keeps the state after them, to be conflated from, and any
// other ends after them with ErrExpired: then, once, it is Lost.
func (w *Watch) Overrun(prev, next *store.Snapshot) Standing {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.cur.prelude
	switch {
	case w.end != nil:
		return Reading
	case p.decided():
		p.first = max(p.first, next.Window.First())
		return Reading
	case w.cur.following():
		return Following
	case w.cur.node == nil && w.cur.skip >= next.Window.Floor():
		// It starts in the future: what has left was before that.
		w.cur.pos = max(w.cur.pos, next.Window.First())
		return Reading
	case !w.cur.overrun(w.stream, prev, next.Window.First()):
		return Reading
	}
	if p == nil {
		p = &prelude{}
	}
	if w.saved(p, prev, next) {
		return Reading
	}
	w.expire(p, next)
	return Lost
}

// Over reports whether the watch has ended, or is Lost and only hands out what
// it has kept.
func (w *Watch) Over() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.end != nil || w.cur.prelude != nil && w.cur.prelude.end != nil
}

// saved has p keep what leaves with prev, if that is possible, so that the
// watch goes on. Events that came and went between prev and next nobody has.
func (w *Watch) saved(p *prelude, prev, next *store.Snapshot) bool {
	if p.beginning() {
		return false
	}
	w.cur.prelude = nil // so that the cursor reads what is behind it
	complete := w.backlog(p, prev)
	w.cur.prelude = p
	p.first = next.Window.First()
	return complete && w.cur.pos >= p.first || w.conflateFrom(p, prev)
}

// backlog moves events from prev to the prelude, up to the watch's buffer, and
// reports whether these are all that prev holds for it. The cursor then stands
// behind the last one.
func (w *Watch) backlog(p *prelude, prev *store.Snapshot) (complete bool) {
	for {
		events, err := w.cur.read(w.stream, prev)
		if len(events) == 0 {
			return err == nil
		}
		n := min(len(events), int(w.buffer)-len(p.events))
		for n > 0 && n < len(events) && events[n-1].Revision == events[n].Revision {
			n--
		}
		if n < len(events) && w.cur.pos > prev.Window.Next() {
			// They are of the round that is under way: what prev holds is taken.
			w.cur.pos, w.cur.rev, w.cur.node = prev.Window.Next(), prev.Window.Revision(), nil
			return true
		}
		p.events = append(p.events[:len(p.events):len(p.events)], events[:n]...)
		if n < len(events) {
			w.cur.rev = p.last(events[0].Revision - 1)
			w.cur.pos = prev.Window.After(w.cur.rev)
			return false
		}
	}
}

// conflateFrom readies a Conflate watch to be conflated from where its backlog
// ends. If it starts at a revision after that, its consumer's state is not known.
func (w *Watch) conflateFrom(p *prelude, prev *store.Snapshot) bool {
	if w.policy != Conflate || w.cur.rev < w.cur.skip {
		return false
	}
	base, err := prev.StateBefore(context.Background(), w.cur.pos)
	p.base, w.cur.node = base, nil
	return err == nil
}

// expire ends the watch after what the prelude has kept. If that was the initial
// state there is nothing: without the changes that follow, the rest of it is of
// no use.
func (w *Watch) expire(p *prelude, next *store.Snapshot) {
	stands := store.Revision(w.safe.Load())
	if p.beginning() {
		p, stands = &prelude{}, p.revision
	}
	p.end = &store.ExpiredError{Requested: p.last(stands), Oldest: next.Window.Floor()}
	w.cur.prelude, w.cur.node = p, nil
	w.signal()
}
