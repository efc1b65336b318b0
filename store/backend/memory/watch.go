package memory

import (
	"context"
	"slices"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/internal/place"
	"github.com/watchmill/watchmill/store/backend/internal/waiting"
	"github.com/watchmill/watchmill/store/window"
)

// Watch follows changes after opts.From. It costs one small allocation, and no
// CPU while it is not read.
//
// Errors: [*store.ExpiredError] if opts.From was dropped, [*store.FutureError] if it has not
// happened, [*store.KeyError] or [*usercode.ConfigError] for opts, [store.ErrClosed], ctx's
// cause.
func (b *Backend) Watch(ctx context.Context, opts backend.WatchOptions) (backend.Watcher, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
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
	w := &watcher{backend: b, stateEvery: opts.StateEvery, Place: place.Place{Prefix: opts.Prefix, At: at, Through: from}}
	w.Init(opts.Notify)
	if opts.State && opts.Prefix == "" {
		w.sharing = true
		b.sharing = append(b.sharing, w)
		b.takeOver(from)
	}
	return w, nil
}

// watcher is a position in the history.
type watcher struct {
	backend *Backend

	// sharing: batches have the state, where more than stateEvery events have come
	// since the last.
	sharing    bool
	stateEvery int

	// The place, and how many events were returned since the last state, are used by Next
	// alone, under the backend's lock if sharing.
	place.Place
	stateless int

	waiting.Follower
}

// Next returns the changes since the previous call, at most limit; a limit below
// one counts as one.
func (w *watcher) Next(limit int) (backend.Batch, error) {
	limit, after := max(1, limit), w.Through
	for {
		if err := w.Ended(); err != nil {
			return backend.Batch{}, err
		}
		batch, more, err := w.next(limit)
		if err != nil {
			return backend.Batch{}, w.Fail(err)
		}
		if len(batch.Events) > 0 || !more {
			batch.After = after
			return batch, nil
		}
	}
}

// next makes one attempt. Without events, more reports whether there were events, which
// w does not cover.
func (w *watcher) next(limit int) (batch backend.Batch, more bool, err error) {
	if w.sharing {
		batch, err = w.backend.shareWith(w, limit)
		return batch, false, err
	}
	history, err := w.backend.historyFor(w)
	if err != nil {
		return batch, false, err
	}
	more = w.At < history.Next()
	batch.Events = w.Read(history, limit)
	batch.Through = w.Through
	return batch, more, nil
}

// shareWith returns the next batch of w, which shares the state, with the state if
// the batch reaches the newest event and a state is due. It holds the lock throughout,
// so that events and state are consistent.
func (b *Backend) shareWith(w *watcher, limit int) (batch backend.Batch, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	history, err := b.historyLocked(w)
	if err != nil {
		return batch, err
	}
	batch.Events = w.gather(history, limit)
	batch.Through = w.Through
	w.stateless += len(batch.Events)
	if w.At == history.Next() && len(batch.Events) > 0 && w.stateless > w.stateEvery {
		batch.State, w.stateless = b.tree.View(), 0
	}
	return batch, nil
}

// gather is read across chunks, so that the batch can have the state. Without a change of
// the state to come, as in a bus, nothing is copied: the events are those of one chunk.
func (w *watcher) gather(history window.View, limit int) []store.Event {
	ahead, change := min(limit, int(history.Next()-w.At)), w.backend.changed > w.Through
	events := w.Read(history, limit)
	if !change || len(events) == ahead {
		return events
	}
	all := append(make([]store.Event, 0, ahead), events...)
	for len(all) < ahead {
		all = append(all, w.Read(history, ahead-len(all))...)
	}
	return all
}

// historyFor returns the history for w to read. If w has read all of it, w joins
// the waiting watches.
func (b *Backend) historyFor(w *watcher) (history window.View, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.historyLocked(w)
}

// historyLocked is historyFor for callers that hold the lock.
func (b *Backend) historyLocked(w *watcher) (history window.View, err error) {
	if b.closed {
		return history, store.ErrClosed
	}
	if oldest := b.compactedTo(); w.Through < oldest {
		return history, &store.ExpiredError{Requested: w.Through, Oldest: oldest}
	}
	history = b.window.View()
	if history.Next() == w.At {
		b.waiting.Add(&w.Follower)
	}
	return history, nil
}

// Close ends the watch. It waits for a notification that is running, so it must
// not be called from one.
func (w *watcher) Close() {
	if w.sharing {
		w.backend.mu.Lock()
		w.backend.sharing = slices.DeleteFunc(w.backend.sharing, func(s *watcher) bool { return s == w })
		w.backend.mu.Unlock()
	}
	w.Follower.Close(&w.backend.mu, &w.backend.waiting)
}
