package watcher

import (
	"context"
	"runtime"
	"sync/atomic"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/window"
)

// take returns the next events, or the reason that the watch ended. With neither,
// the watch has caught up and is waiting: the dispatcher will signal its consumer.
func (w *Watch) take() ([]store.Event, error) { return w.takeWithin(context.Background()) }

// takeWithin is take, unless ctx is done while it searches: then it returns ctx's cause, and the
// next call searches on from there.
func (w *Watch) takeWithin(ctx context.Context) ([]store.Event, error) {
	for {
		events, rest, err := w.takeStep()
		if rest == nil {
			return events, err
		}
		rest()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
}

// takeStep is take, for as long as the dispatcher may have to wait for the lock. If the
// next events are not found by then, it returns the rest: what to do without the lock before
// the next step.
func (w *Watch) takeStep() (events []store.Event, rest func(), err error) {
	events, held, rest, err := w.takeUnderLock()
	if len(events) > 0 && !held && w.feed.Delivered != nil {
		w.tellDelivered(events)
	}
	return events, rest, err
}

// tellDelivered calls Delivered. If that ends the goroutine, the consumer does not get the events: they
// are kept for the next take.
func (w *Watch) tellDelivered(events []store.Event) {
	done := false
	defer func() {
		if !done {
			w.hold(events)
		}
	}()
	w.feed.Delivered(events)
	done = true
}

// takeUnderLock is the part of takeStep under the lock. It also reports whether the events were
// taken before.
func (w *Watch) takeUnderLock() (events []store.Event, held bool, rest func(), err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if events := w.unhold(); len(events) > 0 {
		return events, true, nil, nil
	}
	events, rest = w.read()
	if len(events) == 0 && rest == nil && !w.flags.has(ended) {
		// A later publication, or request for a bookmark, finds the watch waiting;
		// looking once more finds an earlier one.
		w.flags.set(waiting)
		if w.flags.has(bookmarkDue) || !w.cur.exhausted(w.feed.Load()) {
			events, rest = w.read()
		}
	}
	if len(events) == 0 && rest == nil {
		return nil, false, nil, w.reason()
	}
	over := waiting
	if len(events) > 0 {
		over |= untold | emptyHanded
	}
	w.flags.clear(over)
	w.delivered.Add(uint64(len(events)))
	return events, false, rest, nil
}

// hold keeps events that were taken but not given to the consumer, for the next take.
func (w *Watch) hold(events []store.Event) {
	if len(events) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.flags.has(ended) {
		w.obtainExtras().held = events
	}
}

// unhold returns and clears the held events, which the consumer then has in hand. The caller
// holds the lock.
func (w *Watch) unhold() (events []store.Event) {
	if w.extras != nil {
		events = w.extras.held
		w.extras.held, w.extras.inHand = nil, events
	}
	return events
}

// read returns the next events and moves the cursor, or the rest as takeStep does. Without
// either, the watch has caught up, has not begun or has ended. The caller holds the lock.
func (w *Watch) read() (events []store.Event, rest func()) {
	if w.extras != nil && w.extras.drainInitial && w.cur.initial.done() {
		w.finish(w.extras.drainReason)
	}
	if !w.reading() {
		return nil, nil
	}
	snap := w.feed.Load()
	events, err := w.readAt(snap)
	w.countTaken()
	switch {
	case len(events) > 0:
		return events, nil
	case err == errUnfinished:
		return nil, runtime.Gosched
	case err != nil:
		w.finish(err)
		return nil, nil
	case w.cur.mustConflate(snap):
		return nil, w.conflation(snap)
	case w.drainReason() != nil:
		w.finish(w.drainReason())
		return nil, nil
	}
	w.caughtUp()
	return w.bookmark(), nil
}

// readAt reads the cursor's next events of snap.
func (w *Watch) readAt(snap *window.Snapshot) ([]store.Event, error) {
	events, err := w.cur.read(w.stream, snap)
	if w.gap != noGap {
		events = w.markGap(events)
	}
	return events, err
}

// bookmark returns the bookmark that is due, if any.
func (w *Watch) bookmark() []store.Event {
	if !w.traits.has(bookmarks) || w.cur.rev == 0 || !w.flags.clear(bookmarkDue) {
		return nil
	}
	return w.markGap([]store.Event{{Type: store.Bookmark, Revision: w.cur.rev}})
}

// countTaken records how much of its stream the watch has read. It does not change while
// the watch scans the window.
func (w *Watch) countTaken() {
	var kept uint64
	if w.cur.backlog != nil {
		kept = uint64(w.cur.backlog.size)
	}
	switch {
	case w.stream.everything:
		update(&w.taken, uint64(w.cur.pos)-kept)
	case w.cur.node != nil:
		update(&w.taken, w.cur.node.count-kept)
	}
}

// update stores a value that is often the old one: a store waits for all stores before it,
// a load does not. The caller holds the watch's lock, or is its only writer.
func update(field *atomic.Uint64, value uint64) {
	if field.Load() != value {
		field.Store(value)
	}
}

// caughtUp records that the consumer has received everything up to the cursor's
// revision.
func (w *Watch) caughtUp() {
	if w.cur.node == nil && w.cur.backlog == nil && !w.stream.everything {
		update(&w.taken, w.stream.countBefore(w.cur.pos)) // it could not join the stream
	}
	w.resumeAtCursor()
	if w.flags.clear(stalled) {
		w.feed.recovered(w)
	}
}

// resumeAtCursor moves resume to the cursor's revision. If that moves it, no event has told so.
func (w *Watch) resumeAtCursor() {
	if w.traits.has(progressed) && w.resume.Load() != uint64(w.cur.rev) {
		w.flags.set(untold) // before resume, for Behind
	}
	update(&w.resume, uint64(w.cur.rev))
}

// passed records that the consumer has received ev and all events before it.
func (w *Watch) passed(ev store.Event) {
	if ev.Marks&(store.Initial|store.Conflated) == 0 {
		w.resume.Store(uint64(ev.Revision))
	}
}

// passedAll records that the consumer has received the first n events of a batch. If
// the next one has the same revision, the watch cannot be resumed from that yet.
func (w *Watch) passedAll(batch []store.Event, n int) {
	for n > 0 && n < len(batch) && batch[n-1].Revision == batch[n].Revision {
		n--
	}
	if n > 0 {
		w.passed(batch[n-1])
	}
}
