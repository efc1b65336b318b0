package watcher

import (
	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/store"
)

// This file is what the dispatcher asks of a watch and does to it.

// Box returns the watcher's mailbox.
func (w *Watch[T]) Box() *actors.WakeBox { return &w.box }

// Stream returns the stream that the watch was begun on.
func (w *Watch[T]) Stream() *Stream[T] { return w.stream }

// Options returns what the watch was made with.
func (w *Watch[T]) Options() Options {
	o := Options{Policy: w.policy, Buffer: int(w.buffer), Bookmarks: w.bookmarks}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rare != nil {
		o.Deadline = w.rare.deadline
	}
	return o
}

// Handled reports whether the watch has a handler rather than being pulled.
func (w *Watch[T]) Handled() bool { return w.handler != nil }

// OnPool reports whether the watcher's turns run on the pool: they do unless a
// handler may block.
func (w *Watch[T]) OnPool() bool { return w.onPool }

// Armed reports whether the watch has caught up and its consumer waits, so that
// a wake is of use.
func (w *Watch[T]) Armed() bool { return w.armed.Load() }

// Ended reports whether the watch has ended.
func (w *Watch[T]) Ended() bool { return w.ended.Load() }

// Behind reports whether, with next the end of the newest window, the watch
// lags more than its buffer.
func (w *Watch[T]) Behind(next store.Seq) bool {
	count, taken := w.stream.count(next), w.taken.Load()
	return count > taken && count-taken > uint64(w.buffer)
}

// SetStalled calls the watch stalled until it has caught up. It reports whether
// it was not before.
func (w *Watch[T]) SetStalled() bool { return w.stalled.CompareAndSwap(false, true) }

// RequestBookmark makes the watch deliver a bookmark as soon as it has caught
// up. It needs a wake.
func (w *Watch[T]) RequestBookmark() { w.bookmarkDue.Store(true) }

// OwesInitialEnd reports whether the bookmark that closes the initial state is
// still to be delivered.
func (w *Watch[T]) OwesInitialEnd() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cur.prelude != nil && w.cur.prelude.bookmark
}

// Position returns where the watch stands in the window and whether it has
// caught up with its stream.
func (w *Watch[T]) Position() (at store.Seq, caughtUp bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := w.cur.node; n != nil && n.next.Load() == nil {
		return w.feed.Load().Window.Next(), true
	}
	return w.cur.pos, w.cur.pos >= w.feed.Load().Window.Next()
}

// Overrun tells the watch that the window is about to start at next.First: prev
// is the last snapshot that still holds its position. A watch that is left
// behind keeps as many events as its buffer may hold. If those are all that
// there are, it goes on behind them. Otherwise a Conflate watch keeps the state
// after them, to be conflated from, and any other ends after them with
// ErrExpired. Overrun reports whether it is to end.
func (w *Watch[T]) Overrun(prev, next *store.Snapshot[T]) (expired bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.end != nil || w.cur.pos >= next.Window.First() {
		return false
	}
	p := w.cur.prelude
	switch {
	case p == nil:
		p = &prelude[T]{}
	case p.base != nil || p.end != nil:
		return false // it has what it needs to go on, or to end
	case p.state != nil || p.bookmark:
		w.expire(&prelude[T]{}, next) // without what follows, the rest of the state is of no use
		return true
	}
	w.cur.prelude = nil
	complete := w.backlog(p, prev)
	w.cur.prelude = p
	if complete {
		return false
	}
	if w.policy == Conflate && w.conflateFrom(p, prev) {
		return false
	}
	w.expire(p, next)
	return true
}

// backlog moves events from prev to the prelude, up to the watch's buffer, and
// reports whether these are all that prev holds for it. The cursor then stands
// behind the last one.
func (w *Watch[T]) backlog(p *prelude[T], prev *store.Snapshot[T]) (complete bool) {
	for {
		events, err := w.cur.read(w.stream, prev)
		if len(events) == 0 {
			return err == nil
		}
		room := int(w.buffer) - len(p.events)
		p.events = append(p.events[:len(p.events):len(p.events)], events[:min(len(events), room)]...)
		if len(events) > room {
			w.cur.rev = p.last(events[0].Revision - 1)
			return false
		}
	}
}

// conflateFrom readies a watch to be conflated from where its backlog ends.
func (w *Watch[T]) conflateFrom(p *prelude[T], prev *store.Snapshot[T]) bool {
	base, err := prev.Window.StateAt(w.cur.rev)
	if err != nil {
		return false
	}
	p.base = base
	w.cur.node, w.cur.pos = nil, 0 // the window holds nothing for it, wherever it starts
	return true
}

// expire ends the watch after its prelude.
func (w *Watch[T]) expire(p *prelude[T], next *store.Snapshot[T]) {
	p.end = &store.ExpiredError{Requested: p.last(w.Revision()), Oldest: next.Window.Floor()}
	w.cur.prelude = p
	w.signal()
}
