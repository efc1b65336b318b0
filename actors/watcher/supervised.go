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
// is the last snapshot that may still hold its position. If that is left
// behind, a Conflate watch keeps the state at its position to be conflated
// from, any other ends: it keeps what its buffer would hold, then says
// ErrExpired. Overrun reports whether the watch was left behind and is to end.
func (w *Watch[T]) Overrun(prev, next *store.Snapshot[T]) (expired bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.end != nil || !w.cur.overrun(next.Window.First()) {
		return false
	}
	p := w.cur.prelude
	if p != nil && (p.base != nil || p.end != nil) {
		return false
	}
	if w.policy == Conflate {
		if base, err := prev.Window.StateAt(w.cur.rev); err == nil {
			w.cur.prelude = &prelude[T]{base: base}
			return false
		}
	}
	oldest := next.Window.Floor()
	w.cur.prelude = &prelude[T]{
		events: w.backlog(prev),
		end:    &store.ExpiredError{Requested: w.cur.rev, Oldest: oldest},
	}
	w.signal()
	return true
}

// backlog takes what a bounded buffer would hold of a watch that expires. One
// that is still on its initial state holds nothing: without the changes that
// follow, the rest of that state is of no use.
func (w *Watch[T]) backlog(prev *store.Snapshot[T]) []store.Event[T] {
	var kept []store.Event[T]
	if w.cur.prelude != nil {
		return nil
	}
	for len(kept) < int(w.buffer) {
		events, err := w.cur.read(w.stream, prev)
		if err != nil || len(events) == 0 {
			break
		}
		kept = append(kept, events[:min(len(events), int(w.buffer)-len(kept))]...)
	}
	return kept
}
