package world

import (
	"context"
	"slices"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/explore/internal/execution"
	"github.com/watchmill/watchmill/sim/explore/script"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
)

// drain lets every consumer take all events that there are, and adds the causes to end
// that a drained watch must have obeyed.
func (w *World[T]) drain() {
	for _, r := range w.started {
		w.take(r, takeAll)
		r.Lost = w.lost(r)
		r.Drained = true
		if w.isDue(r) {
			r.Causes = append(r.Causes, engine.ErrDeadline)
		}
		if r.endsByContext() {
			r.Causes = append(r.Causes, execution.ErrCanceled)
		}
		r.Causes = append(r.Causes, w.broken(r)...)
	}
}

// checkServes checks that at rest the engine serves reads of every mode and a new watch without
// an error. That watch is judged with the others.
func (w *World[T]) checkServes() {
	w.resting = true
	for mode := range script.ReadModes {
		newest := uint64(w.newest()) - 1 // the seed from which newRead makes the newest revision
		w.get(context.Background(), w.engine, mode, newest)
		w.listBy(context.Background(), w.engine, mode, newest, Selection[T]{})
	}
	id := len(w.started)
	for w.watches[id] != nil {
		id++
	}
	w.open(script.Step{Do: script.Watch, Turns: script.Unlimited}, id, script.Start{Options: engine.WatchOptions{InitialState: true, Linearizable: true, Bookmarks: true}})
	w.resting = false
}

// pauseTime is longer than twice the time between two bookmarks, the TTL of every object
// and the timeout of every watch of a drawn scenario.
const pauseTime = 2*time.Minute + 2*time.Second

// waitForTick lets two seconds pass if the clock was corrected: the engine measures some times
// by ticks, and after the next tick they are right again.
func (w *World[T]) waitForTick() {
	if w.storage.ClockJumped {
		w.clock.Advance(2 * time.Second)
		w.fireDueTimers()
	}
}

// checkProgress checks that within a second each watch that has requested progress gets the newest
// revision, unless it may have begun there.
func (w *World[T]) checkProgress() {
	newest := w.newest()
	w.clock.Advance(time.Second)
	w.fireDueTimers()
	w.drain()
	if w.newest() != newest {
		return // objects have expired, perhaps at the end of the second
	}
	for _, r := range w.started {
		told := max(r.Options.From, r.Latest)
		for _, ev := range r.Events {
			told = max(told, w.history().Shown(ev.Revision))
		}
		if r.Options.Progress && w.wantsBookmarks(r) && told < newest {
			w.fail(judge.Failed(judge.Bookmarkable, r.Name, "it was told of %d, not of %d", told, newest))
		}
	}
}

// pause lets pauseTime pass without calls, and checks that what is due happens: objects
// expire, and watches that requested bookmarks receive one of the newest revision.
func (w *World[T]) pause() {
	revisionBefore, eventsBefore := w.newest(), make([]int, len(w.started))
	for i, r := range w.started {
		eventsBefore[i] = len(r.Events)
	}
	w.clock.Advance(pauseTime)
	w.fireDueTimers()
	w.drain()
	w.fail(w.storage.Overdue())
	if w.newest() != revisionBefore {
		return // the last change may have come after the last bookmark
	}
	for i, r := range w.started {
		if w.wantsBookmarks(r) && !slices.ContainsFunc(r.Events[eventsBefore[i]:], w.isNewest) {
			w.fail(judge.Failed(judge.Bookmarkable, r.Name, "no bookmark at %d comes within %v", w.newest(), pauseTime))
		}
	}
}

// wantsBookmarks reports whether the watch must receive bookmarks: it requested them, has
// not ended and has no timeout, and its start is not in the future.
func (w *World[T]) wantsBookmarks(r *watch[T]) bool {
	o := r.Options
	return o.Bookmarks && r.handle.Err() == nil && max(o.From, r.Earliest) <= w.newest() && o.Timeout == 0
}

// isNewest reports whether ev is a bookmark of the newest revision.
func (w *World[T]) isNewest(ev engine.Event[T]) bool {
	return ev.Type == store.Bookmark && ev.Revision == w.newest()
}

// takeAll is the step in which a consumer takes all events that are available.
var takeAll = script.Step{Do: script.Take, N: 1 << 30, Turns: script.Unlimited}

// finish removes all faults from storage, lets the engine catch up and every consumer
// read all that there is, and then judges everything.
func (w *World[T]) finish() {
	if w.recover(); w.failed != nil {
		return
	}
	w.endRetries()
	w.fireDueTimers()
	w.drain()
	w.judgeWatches()
	w.sched.Settle()
	w.check(w.always)
	w.check(w.finally)
	if w.failed == nil {
		w.checkServes()
		w.waitForTick()
		w.checkProgress()
		w.pause()
		w.pause()
		w.judgeWatches()
		w.judgeMirrors()
	}
	w.judgeFigures()
}

// judgeFigures compares the engine's own counts of its watches with those that the world has started, unless
// Attach or the mirrors have started others.
func (w *World[T]) judgeFigures() {
	if !w.unfollowed() {
		return
	}
	s := w.engine.Stats()
	w.fail(judge.JudgeFigures(judge.Figures{
		Living: s.Watches, SlowConsumers: s.Terminated, Deadlines: s.DeadlinesReached, Panics: s.Panicked, Expired: s.Expired,
	}, w.ends()))
}

// close closes the engine and judges its end: every watch has ended, for one reason, and
// no actor or timer is left.
func (w *World[T]) close() {
	w.closing = true
	for _, r := range w.started {
		if r.handle.Err() == nil && (len(r.Causes) == 0 || r.Uncached) {
			r.Causes = append(r.Causes, engine.ErrEngineClosed)
		}
	}
	if err := w.engine.Close(); err != nil {
		w.fail(judge.Failed(judge.NothingLeft, "", "%v", err))
		return
	}
	if w.uncached != nil {
		if err := w.uncached.Close(); err != nil {
			w.fail(judge.Failed(judge.NothingLeft, "engine without cache", "%v", err))
			return
		}
	}
	for _, r := range w.started {
		if w.ended(r, r.handle.Err()); r.End() == nil {
			w.fail(judge.Failed(judge.Ends, r.Name, "it outlives the engine"))
			return
		}
		w.take(r, takeAll)
		w.judgeToldEnd(r)
	}
	w.judgeWatches()
	if w.toldSkips != w.skipped {
		w.fail(judge.Failed(Retries, "", "OnError was told of %d skipped events, of %d", w.toldSkips, w.skipped))
	}
	if err := w.storage.Close(); err != nil {
		w.fail(judge.Failed(judge.NothingLeft, "storage", "%v", err))
	}
	if err := judge.JudgeLeft(w.host.Actors(), w.host.Timers(), w.host.ActorNames()); err != nil {
		w.fail(err)
		return
	}
	w.sched.Closing = true
	if err := w.host.Close(); err != nil {
		w.fail(judge.Failed(judge.NothingLeft, "host", "%v", err))
	}
}

// judgeToldEnd fails the world unless OnEnd was called once for a watch that has ended, with the reason.
// Scenarios that are written by hand may have several watches of one name.
func (w *World[T]) judgeToldEnd(r *watch[T]) {
	told, same := w.toldEnds[r.Name], 0
	if w.seams.toldEnds != nil {
		told = w.seams.toldEnds(told)
	}
	for _, other := range w.started {
		if other.Name == r.Name {
			same++
		}
	}
	if len(told) != same || same == 1 && told[0] != r.handle.Err() {
		w.fail(judge.Failed(judge.Ends, r.Name, "it has ended for %v, and OnEnd was called with %v", r.handle.Err(), told))
	}
}
