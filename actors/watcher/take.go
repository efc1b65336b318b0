package watcher

import "github.com/watchmill/watchmill/store"

// take hands the consumer what is next: events, or why the watch ended. With
// neither, the watch has caught up and is waiting: the dispatcher will have its
// consumer look again.
func (w *Watch) take() ([]store.Event, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if events := w.unhold(); len(events) > 0 {
		return events, nil
	}
	events := w.read()
	if len(events) == 0 && !w.flags.has(ended) {
		// Whatever is published from here on finds the watch waiting; what came
		// before is found by reading once more.
		w.flags.set(waiting)
		events = w.read()
	}
	if len(events) == 0 {
		return nil, w.reason()
	}
	w.flags.clear(waiting)
	w.delivered.Add(uint64(len(events)))
	if w.feed.Delivered != nil {
		w.feed.Delivered(events)
	}
	return events, nil
}

// hold keeps events that were taken and not given to the consumer, for the next
// take.
func (w *Watch) hold(events []store.Event) {
	if len(events) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.flags.has(ended) {
		w.more().held = events
	}
}

// unhold returns what is held, which then no longer is. The caller holds the
// lock.
func (w *Watch) unhold() (events []store.Event) {
	if w.extras != nil {
		events, w.extras.held = w.extras.held, nil
	}
	return events
}

// read moves the cursor over the next events. Without any, the watch has caught
// up, has not begun or has ended. The caller holds the lock.
func (w *Watch) read() []store.Event {
	if w.extras != nil && w.extras.drainInitial && w.cur.initial.done() {
		w.finish(w.extras.drainTo)
	}
	if !w.reading() {
		return nil
	}
	events, err := w.readAt(w.feed.Load())
	w.count()
	switch {
	case len(events) > 0:
		return events
	case err != nil:
		w.finish(err)
		return nil
	case w.extras != nil && w.extras.drainTo != nil:
		w.finish(w.extras.drainTo)
		return nil
	}
	w.caughtUp()
	return w.bookmark()
}

// readAt reads the cursor's next events of snap.
func (w *Watch) readAt(snap *store.Snapshot) ([]store.Event, error) {
	events, err := w.cur.read(w.stream, snap)
	if len(events) == 0 && err == nil && w.cur.mustConflate(snap) {
		w.conflate(snap)
		events, err = w.cur.read(w.stream, snap)
	}
	if w.untold {
		events = w.tell(events)
	}
	return events, err
}

// bookmark returns the bookmark that is due, if any.
func (w *Watch) bookmark() []store.Event {
	if !w.traits.has(bookmarks) || w.cur.rev == 0 || !w.flags.clear(bookmarkDue) {
		return nil
	}
	return []store.Event{{Type: store.Bookmark, Revision: w.cur.rev}}
}

// count records how much of its stream the watch has taken. One that scans the
// window cannot say, and keeps the figure that it had.
func (w *Watch) count() {
	var kept uint64
	if w.cur.backlog != nil {
		kept = uint64(w.cur.backlog.size)
	}
	switch {
	case w.stream.everything:
		w.taken.Store(uint64(w.cur.pos) - kept)
	case w.cur.node != nil:
		w.taken.Store(w.cur.node.count - kept)
	}
}

// caughtUp notes that the consumer, which asks for more, has been given all up
// to the cursor's revision.
func (w *Watch) caughtUp() {
	w.resume.Store(uint64(w.cur.rev))
	if w.flags.clear(stalled) {
		w.feed.recovered(w)
	}
}

// passed notes that the consumer has been given ev and all before it.
func (w *Watch) passed(ev store.Event) {
	if ev.Marks&(store.Initial|store.Conflated) == 0 {
		w.resume.Store(uint64(ev.Revision))
	}
}

// passedAll notes that the consumer has been given the first n of a batch. If
// the next one has the same revision, that one cannot be resumed from yet.
func (w *Watch) passedAll(batch []store.Event, n int) {
	for n > 0 && n < len(batch) && batch[n-1].Revision == batch[n].Revision {
		n--
	}
	if n > 0 {
		w.passed(batch[n-1])
	}
}
