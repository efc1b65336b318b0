package memory

import (
	"context"
	"sync"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// Watch starts to follow changes after opts.From. It costs one small
// allocation, and nothing at all while nothing is read.
func (b *Backend) Watch(ctx context.Context, opts backend.WatchOptions) (backend.Watcher, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, store.ErrClosed
	}
	if err := opts.Check(b.compactedTo(), b.revision); err != nil {
		return nil, err
	}
	from := opts.From
	if from == 0 {
		from = b.revision
	}
	at, err := b.window.View().Seek(from)
	if err != nil {
		return nil, err
	}
	return &watcher{backend: b, prefix: opts.Prefix, at: at, through: from, slot: notWaiting, notify: opts.Notify}, nil
}

// watcher is a position in the history.
type watcher struct {
	backend *Backend
	prefix  string

	// The consumer's: Next alone uses them.
	at      store.Seq
	through store.Revision // everything up to it was handed out

	slot int // in backend.waiting, guarded by the backend's lock

	gate   sync.Mutex // held while notify runs, so that Close waits for it
	notify func()
	end    error // why there is nothing more to come; nil while there may be
}

// Next returns the changes since the call before; at most max, of which less
// than one counts as one.
func (w *watcher) Next(max int) (backend.Batch, error) {
	batch := backend.Batch{After: w.through, Through: w.through}
	for {
		if err := w.ended(); err != nil {
			return backend.Batch{}, err
		}
		history, err := w.backend.historyFor(w)
		if err != nil {
			return backend.Batch{}, w.fail(err)
		}
		if history.Next() == w.at {
			return batch, nil
		}
		batch.Events = w.read(history, max)
		batch.Through = w.through
		if len(batch.Events) > 0 {
			return batch, nil
		}
	}
}

// historyFor returns the history that w is to read on in. If it has read all of
// it, it waits from now on.
func (b *Backend) historyFor(w *watcher) (history store.WindowView, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return history, store.ErrClosed
	}
	if oldest := b.compactedTo(); w.through < oldest {
		return history, &store.ExpiredError{Requested: w.through, Oldest: oldest}
	}
	history = b.window.View()
	if history.Next() == w.at {
		b.waiting.add(w)
	}
	return history, nil
}

// read takes the next events that w covers out of history, and moves w behind
// them. Without a prefix they are not copied, but end with their chunk of the
// window; with one they are looked for up to the end of history.
func (w *watcher) read(history store.WindowView, max int) []store.Event {
	if max < 1 {
		max = 1
	}
	if w.prefix == "" {
		events, _ := history.Read(w.at)
		n := min(len(events), max)
		w.advance(history, n)
		return events[:n:n]
	}
	var found []store.Event
	for w.at < history.Next() && len(found) < max {
		found = w.filter(history, found, max)
	}
	return found
}

// filter appends to found the events of one chunk that w covers.
func (w *watcher) filter(history store.WindowView, found []store.Event, max int) []store.Event {
	chunk, _ := history.Read(w.at)
	for i, ev := range chunk {
		if !store.HasPrefix(ev.Key(), w.prefix) {
			continue
		}
		if found = append(found, ev); len(found) == max {
			w.advance(history, i+1)
			return found
		}
	}
	w.advance(history, len(chunk))
	return found
}

// advance moves w over n events.
func (w *watcher) advance(history store.WindowView, n int) {
	w.at += store.Seq(n)
	w.through = history.RevisionAt(w.at)
}

// wake tells the consumer to call Next. If that panics, the watch ends.
func (w *watcher) wake() {
	w.gate.Lock()
	defer w.gate.Unlock()
	if w.end == nil {
		w.end = backend.Contain("WatchOptions.Notify", "", w.notify)
	}
}

// ended returns why the watch ended, nil if it did not.
func (w *watcher) ended() error {
	w.gate.Lock()
	defer w.gate.Unlock()
	return w.end
}

// fail ends the watch with err, unless it has ended, and returns why it ended.
func (w *watcher) fail(err error) error {
	w.gate.Lock()
	defer w.gate.Unlock()
	if w.end == nil {
		w.end = err
	}
	return w.end
}

// Close ends the watch. It waits for a notification that is running, so it must
// not be called from one.
func (w *watcher) Close() {
	w.backend.mu.Lock()
	w.backend.waiting.remove(w)
	w.slot = closed
	w.backend.mu.Unlock()
	_ = w.fail(store.ErrClosed)
}
