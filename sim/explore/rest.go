package explore

import (
	"context"
	"slices"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
)

// drain gives every consumer what there is.
func (w *World[T]) drain() {
	for _, r := range w.started {
		w.take(r, everythingThereIs)
		r.Lost = w.lost(r)
		if r.Drained = true; w.isDue(r) {
			r.Causes = append(r.Causes, engine.ErrDeadline)
		}
		if r.caller.left {
			r.Causes = append(r.Causes, errLeft)
		}
		r.Causes = append(r.Causes, w.broken(r)...)
	}
}

// serves: the engine serves every call without an error.
func (w *World[T]) serves() {
	w.resting = true
	for mode := range readModes {
		newest := uint64(w.newest()) - 1 // as a seed
		w.get(context.Background(), w.engine, mode, newest)
		w.listBy(context.Background(), w.engine, mode, newest, Selection[T]{})
	}
	id := len(w.started)
	for w.watches[id] != nil {
		id++
	}
	w.open(Step{Do: Watch, Turns: unlimited}, id, Start{Options: engine.WatchOptions{InitialState: true, Linearizable: true, Bookmarks: true}})
	w.resting = false
}

// pauseTime is longer than two bookmarks are apart, than an object lives that
// expires, and than a watch with a timeout.
const pauseTime = 2*time.Minute + 2*time.Second

// notice lets the parts that count time by ticks have one, if the clock was corrected:
// from then on they count right, and what is due comes in time.
func (w *World[T]) notice() {
	if w.storage.jumped {
		w.clock.Advance(2 * time.Second)
		w.calm()
	}
}

// pause lets time pass without calls, so that everything pending happens.
func (w *World[T]) pause() {
	before, given := w.newest(), make([]int, len(w.started))
	for i, r := range w.started {
		given[i] = len(r.Events)
	}
	w.clock.Advance(pauseTime)
	w.calm()
	w.drain()
	if err := w.storage.overdue(); err != nil {
		w.fail(err)
	}
	if w.newest() != before {
		return // what came last may have come after the bookmarks
	}
	for i, r := range w.started {
		if w.wantsBookmarks(r) && !slices.ContainsFunc(r.Events[given[i]:], w.isNewest) {
			w.fail(judge.Failed(judge.Bookmarkable, r.Name, "no bookmark at %d comes within %v", w.newest(), pauseTime))
		}
	}
}

// wantsBookmarks reports whether the watch is to be given a bookmark from time to
// time: not before its start has come, nor when its end is near.
func (w *World[T]) wantsBookmarks(r *watch[T]) bool {
	o := r.Options
	return o.Bookmarks && r.handle.Err() == nil && max(o.From, r.Earliest) <= w.newest() && o.Timeout == 0
}

// isNewest reports whether ev is a bookmark of the newest revision.
func (w *World[T]) isNewest(ev engine.Event[T]) bool {
	return ev.Type == store.Bookmark && ev.Revision == w.newest()
}
