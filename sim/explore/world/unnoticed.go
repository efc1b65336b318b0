package world

import (
	"context"
	"slices"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/explore/script"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// Storage may go back more than once before the engine has caught up. Until it has, what its cache
// shows is of one of the histories since the oldest that it may have:
//
//	former:  h0  h1 │ h2  h3      history: h4
//	                  ▲                     ▲
//	                  oldest                storage, an engine without a cache, and what the engine
//	                                        with a cache asks storage for

// oldestShown returns the index of the oldest history that the engine may show now: in former or, for
// len(former), the current one. It is the one of which the cache has a state, once that was ready.
func (w *World[T]) oldestShown() int {
	if !w.rewinding {
		return len(w.former)
	}
	if w.engine.Stats().Generation == 0 {
		return w.oldest
	}
	has, err := w.engine.Timeline(context.Background())
	if err != nil { // it is being closed
		return w.oldest
	}
	return w.oldest + max(0, slices.Index(w.histories(w.oldest), w.identities[has.Store()]))
}

// unnoticed reports whether storage has gone back, and the engine may still show what it had before.
func (w *World[T]) unnoticed() bool { return w.oldestShown() < len(w.former) }

// histories returns the histories from that with the index since on, the current one last.
func (w *World[T]) histories(since int) []*judge.History[T] {
	return append(slices.Clone(w.former[since:]), w.history())
}

// leastRestored returns the least revision that storage had right after it went back, since it had the
// history with that index.
func (w *World[T]) leastRestored(since int) store.Revision { return slices.Min(w.restored[since:]) }

// identify notes the identity of the storage that there is now.
func (w *World[T]) identify() {
	id, err := backend.StoreID(context.Background(), w.storage)
	if err != nil {
		w.fail(judge.Failed(judge.Refusals, "storage", "%v", err))
	}
	w.identities[id] = w.history()
}

// historyOf returns the history of which a list says it is; the current one if its storage is unknown.
func (w *World[T]) historyOf(l *engine.List[T]) *judge.History[T] {
	if h := w.identities[l.Timeline.Store()]; h != nil {
		return h
	}
	return w.history()
}

// outlivesHistory reports whether storage has, or may have, gone back since the engine began a watch.
func (w *World[T]) outlivesHistory(r *watch[T]) bool { return len(w.former) > r.rewinds || r.ambiguous }

// startedDuringRewind handles a watch during whose start, or before it, storage went back. If it runs
// when the engine has caught up, it is of the current history.
func (w *World[T]) startedDuringRewind(r *watch[T]) {
	r.Earliest = min(r.Earliest, w.leastRestored(r.since))
	if !w.rewinding && r.handle.Err() == nil {
		w.move(r)
	}
}

// doubtWatches marks the watches that run as ambiguous. One that has not reached its start yet may begin in
// the history that storage has gone back to.
func (w *World[T]) doubtWatches() {
	for _, r := range w.started {
		if !r.Uncached && r.handle.Err() == nil {
			r.ambiguous = true
		}
	}
}

// moveWatches moves the watches that continue after storage went back, and the engine has caught up,
// to the current history.
func (w *World[T]) moveWatches() {
	for _, r := range w.started {
		if r.ambiguous && r.handle.Err() == nil {
			w.move(r)
		}
	}
}

// move moves a watch to the current history. Positions beyond that are no longer claims.
func (w *World[T]) move(r *watch[T]) {
	least := w.leastRestored(r.since)
	r.history, r.ambiguous = w.history(), false
	r.Earliest, r.reached = min(r.Earliest, least), min(r.reached, least)
	r.Claims = slices.DeleteFunc(r.Claims, func(c judge.Claim) bool { return c.Revision > w.newest() })
}

// judgeWatch judges a watch by its history or, if that is not known, by each that it may have.
func (w *World[T]) judgeWatch(r *watch[T]) (err error) {
	if !r.ambiguous {
		return r.history.Judge(&r.Record)
	}
	for i, h := range w.histories(r.since) {
		record := r.Record
		if i > 0 {
			record.Earliest = min(record.Earliest, w.restored[r.since+i-1])
		}
		if r.since+i != r.returned && !r.exact {
			record.Latest = h.Newest()
		}
		if err = h.Judge(&record); err == nil {
			return nil
		}
	}
	return err
}

// judgeShown judges a read by the histories that it may show: holds must return nil for one of them.
func (w *World[T]) judgeShown(may []*judge.History[T], mode script.ReadMode, r read[T], holds func(*judge.History[T], judge.Read[T]) error) (err error) {
	for _, h := range may {
		if err = holds(h, w.boundsIn(h, mode, r)); err == nil {
			return nil
		}
	}
	return err
}

// boundsIn returns a read, which has been made, with the bounds of what it may show of the history h.
func (w *World[T]) boundsIn(h *judge.History[T], mode script.ReadMode, r read[T]) judge.Read[T] {
	bounds := w.completeRead(mode, r)
	if r.since == len(w.former) || mode == script.ReadExact {
		return bounds
	}
	bounds.Newest = h.Newest()
	if mode == script.ReadCached && h != w.former[r.since] || mode == script.ReadLatest && h != w.history() {
		bounds.Oldest = 0
	}
	return bounds
}

// mustShowStorage notes that a read must show storage as it is: the call asks storage for the object, or
// storage is behind the cache, by which the engine knows that it has gone back.
func (w *World[T]) mustShowStorage(r *read[T]) { r.since = len(w.former) }

// noteBehind notes that a list of the newest state must show storage if that is behind the cache.
func (w *World[T]) noteBehind(r *read[T]) {
	if w.newest() < r.reached {
		w.mustShowStorage(r)
	}
}

// mayMistakeObject reports whether a write may take an object of the cache for that of storage, so that
// it is not made. An engine whose storage may block tries a write with the object that it has, and
// storage compares revisions, which are the same here though the objects are of two histories.
func (w *World[T]) mayMistakeObject(s script.Step) bool {
	if !w.scenario.Setup.Blocks || w.engineOfStep(s) != w.engine || w.engine.Revision() == 0 || !w.unnoticed() {
		return false
	}
	if s.Do == script.Race { // the other write may make the two the same
		return true
	}
	return slices.ContainsFunc(w.history().Keys(), func(key string) bool {
		has, err := w.engine.Get(context.Background(), key, engine.GetOptions{Read: engine.Cached()})
		value, since, known := w.history().Get(key)
		return err == nil && known && has.Revision == since &&
			!(w.storage.Equal(has.Value, value) && has.Expires.Equal(w.storage.Expiry(key)))
	})
}
