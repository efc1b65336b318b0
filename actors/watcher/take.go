package watcher

import "github.com/watchmill/watchmill/store"

// take hands the consumer what is next: events, or why the watch ended. With
// neither, the watch has caught up and is armed: the dispatcher will wake it.
func (w *Watch) take() ([]store.Event, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	events := w.read()
	if len(events) == 0 && w.end == nil {
		// Whatever is published from here on finds the watch armed; what came
		// before is found by reading once more.
		w.armed.Store(true)
		events = w.read()
	}
	if len(events) == 0 {
		return nil, w.end
	}
	w.armed.Store(false)
	w.delivered.Add(uint64(len(events)))
	return events, nil
}

// read moves the cursor over the next events. Without any, the watch has caught
// up or ended. The caller holds the lock.
func (w *Watch) read() []store.Event {
	if w.rare != nil && w.rare.drainPrelude && w.cur.prelude.done() {
		w.finish(w.rare.drainTo)
	}
	if w.end != nil {
		return nil
	}
	snap := w.feed.Load()
	events, err := w.cur.read(w.stream, snap)
	w.count()
	switch {
	case len(events) > 0:
		return events
	case err != nil:
		w.finish(err)
		return nil
	case w.rare != nil && w.rare.drainTo != nil:
		w.finish(w.rare.drainTo)
		return nil
	}
	w.caughtUp()
	return w.bookmark()
}

// bookmark returns the bookmark that is due, if any. One below a start in the
// future waits until that is reached: it would lead back before it.
func (w *Watch) bookmark() []store.Event {
	if !w.bookmarks || w.cur.rev < max(w.cur.skip, 1) || !w.flags.clear(bookmarkDue) {
		return nil
	}
	return []store.Event{{Type: store.Bookmark, Revision: w.cur.rev}}
}

// count records how much of its stream the watch has taken. One that scans the
// window cannot say, and keeps the figure that it had.
func (w *Watch) count() {
	switch {
	case w.stream.everything:
		w.taken.Store(uint64(w.cur.pos))
	case w.cur.node != nil:
		w.taken.Store(w.cur.node.count)
	}
}

// caughtUp notes that the consumer, which asks for more, has been given all up
// to the cursor's revision.
func (w *Watch) caughtUp() {
	w.safe.Store(uint64(max(w.cur.rev, w.cur.skip)))
	if w.flags.clear(stalled) && w.feed.Recovered != nil {
		w.feed.Recovered(w)
	}
}

// passed notes that the consumer has been given ev.
func (w *Watch) passed(ev store.Event) {
	if ev.Marks&(store.Initial|store.Conflated) == 0 {
		w.safe.Store(uint64(ev.Revision))
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

// signal tells a waiting consumer to look again. The caller holds the lock.
func (w *Watch) signal() {
	if w.ready == nil {
		return
	}
	select {
	case w.ready <- struct{}{}:
	default:
	}
}
