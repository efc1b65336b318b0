package engine

import (
	"sync"
	"sync/atomic"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// follower is a watch of a [source]: a position in the window.
type follower[T any] struct {
	engine       *Engine[T]
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
func (w *follower[T]) seek(snap *store.Snapshot[T]) error {
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
func (w *follower[T]) Next(max int) (backend.Batch[T], error) {
	nothing := backend.Batch[T]{After: w.through, Through: w.through}
	if w.closed.Load() {
		return nothing, store.ErrClosed
	}
	if w.engine.open() != nil {
		return nothing, errSourceClosed()
	}
	w.notification.again.Store(true)
	snap := w.engine.published.Load()
	if !w.placed {
		if err := w.seek(snap); err != nil || !w.placed {
			return nothing, err
		}
	}
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
			batch.After = nothing.After
			return batch, nil
		}
	}
}

func (w *follower[T]) expired(snap *store.Snapshot[T]) error {
	return &ExpiredError{Requested: w.through, Oldest: snap.Window.Floor()}
}

// take moves the position over at most max of the events.
func (w *follower[T]) take(window store.WindowView[T], events []Event[T], most int) backend.Batch[T] {
	events = events[:min(len(events), max(most, 1))]
	w.at += store.Seq(len(events))
	w.through = max(w.through, window.RevisionAt(w.at))
	if n := len(events); n > 0 {
		w.through = max(w.through, events[n-1].Revision)
	}
	return backend.Batch[T]{Through: w.through, Events: w.wanted(events)}
}

// wanted leaves out what is outside of the prefix, and what the caller has
// already seen, having started ahead of the cache.
func (w *follower[T]) wanted(events []Event[T]) []Event[T] {
	for len(events) > 0 && events[0].Revision <= w.from {
		events = events[1:]
	}
	if w.prefix == "" {
		return events
	}
	var under []Event[T]
	for _, ev := range events {
		if store.HasPrefix(ev.Key(), w.prefix) {
			under = append(under, ev)
		}
	}
	return under
}

// Close ends the watch. It waits for a notification that is running.
func (w *follower[T]) Close() {
	if !w.closed.Swap(true) {
		w.engine.sources.remove(w.notification)
	}
}

// followers are the watches of an engine's sources, to be told when the cache
// has published something.
type followers struct {
	mu  sync.Mutex
	all []*notification
}

// notification is how one of them is told, once for each time that it has
// looked.
type notification struct {
	// telling is held while tell runs, so that remove can wait for it.
	telling sync.Mutex
	tell    func() // nil once removed
	again   atomic.Bool
}

func (f *followers) add(tell func()) *notification {
	n := &notification{tell: tell}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all[:len(f.all):len(f.all)], n)
	return n
}

func (f *followers) remove(n *notification) {
	f.mu.Lock()
	kept := make([]*notification, 0, len(f.all))
	for _, other := range f.all {
		if other != n {
			kept = append(kept, other)
		}
	}
	f.all = kept
	f.mu.Unlock()
	n.telling.Lock()
	n.tell = nil
	n.telling.Unlock()
}

// notify tells all of them, in the order in which they came.
func (f *followers) notify() {
	f.mu.Lock()
	all := f.all // never changed in place
	f.mu.Unlock()
	for _, n := range all {
		n.notify()
	}
}

func (n *notification) notify() {
	if !n.again.Swap(false) {
		return
	}
	n.telling.Lock()
	defer n.telling.Unlock()
	if n.tell != nil {
		n.tell()
	}
}
