package engine

import (
	"slices"
	"sync/atomic"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// follower is a watch of a [source]: a position in the window.
type follower struct {
	engine       *core
	prefix       string
	notification *notification

	// at is the position of the next event in the window of epoch, once placed:
	// the cache had been filled when it was looked for.
	at     store.Seq
	epoch  uint64
	placed bool
	// from is where the watch starts, which may be ahead of the cache.
	from Revision
	// through is the revision up to which everything was handed out.
	through Revision
	closed  atomic.Bool
}

// seek finds the position behind through, unless the cache was never filled.
func (w *follower) seek(snap *store.Snapshot) error {
	if snap.Generation == 0 {
		return nil
	}
	at, err := snap.Window.Seek(w.through)
	if err != nil {
		return err
	}
	w.at, w.epoch, w.placed = at, snap.Epoch, true
	return nil
}

// Next returns the next events of the window. They are shared, not copied,
// unless a prefix picks some.
func (w *follower) Next(max int) (backend.Batch, error) {
	nothing := backend.Batch{After: w.through, Through: w.through}
	if w.closed.Load() {
		return nothing, store.ErrClosed
	}
	if broken := w.notification.broken.Load(); broken != nil {
		return nothing, *broken
	}
	// It looks before it asks whether the engine is open: who looks too late to be
	// told of the end finds it closed.
	w.at = w.engine.sources.look(w.notification, w.at)
	if w.engine.alive() != nil {
		return nothing, errSourceClosed()
	}
	snap := w.engine.published.Load()
	if !w.placed {
		if err := w.seek(snap); err != nil || !w.placed {
			return nothing, err
		}
	}
	defer func() { w.engine.sources.looked(w.notification, w.at, w.through) }()
	if snap.Epoch != w.epoch {
		return nothing, w.expired(snap)
	}
	for {
		events, ok := snap.Window.Read(w.at)
		if !ok {
			return nothing, w.expired(snap)
		}
		batch := w.take(snap.Window, events, max)
		if len(batch.Events) > 0 || w.at == snap.Window.Next() {
			w.skip(snap.Window)
			batch.After = nothing.After
			return batch, nil
		}
	}
}

func (w *follower) expired(snap *store.Snapshot) error {
	return &ExpiredError{Requested: w.through, Oldest: snap.Window.Floor()}
}

// take moves the position over at most max of the events.
func (w *follower) take(window store.WindowView, events []store.Event, most int) backend.Batch {
	events = events[:min(len(events), max(most, 1))]
	w.at += store.Seq(len(events))
	w.through = max(w.through, window.RevisionAt(w.at))
	if n := len(events); n > 0 {
		w.through = max(w.through, events[n-1].Revision)
	}
	return backend.Batch{Through: w.through, Events: w.wanted(events)}
}

// skip moves the position to the next event under the prefix: that others leave
// the window is nothing to the watch.
func (w *follower) skip(window store.WindowView) {
	for w.prefix != "" && w.at < window.Next() {
		events, _ := window.Read(w.at)
		i := slices.IndexFunc(events, func(ev store.Event) bool { return store.HasPrefix(ev.Key(), w.prefix) })
		if i >= 0 {
			w.at += store.Seq(i)
			return
		}
		w.at += store.Seq(len(events))
	}
}

// wanted leaves out what is outside of the prefix, and what the caller has
// already seen, having started ahead of the cache.
func (w *follower) wanted(events []store.Event) []store.Event {
	for len(events) > 0 && events[0].Revision <= w.from {
		events = events[1:]
	}
	if w.prefix == "" {
		return events
	}
	var under []store.Event
	for _, ev := range events {
		if store.HasPrefix(ev.Key(), w.prefix) {
			under = append(under, ev)
		}
	}
	return under
}

// Close ends the watch. It waits for a notification that is running.
func (w *follower) Close() {
	if !w.closed.Swap(true) {
		w.engine.sources.remove(w.notification)
	}
}
