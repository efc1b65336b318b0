package memory

import (
	"context"
	"slices"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/internal/waiting"
)

// Watch follows changes after opts.From. It costs one small allocation, and no
// CPU while it is not read.
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
	w := &watcher{backend: b, prefix: opts.Prefix, at: at, through: from, stateEvery: opts.StateEvery}
	w.Init(opts.Notify)
	if opts.State && opts.Prefix == "" {
		w.sharing = true
		b.sharing = append(b.sharing, w)
	}
	return w, nil
}

// watcher is a position in the history.
type watcher struct {
	backend *Backend
	prefix  string

	// sharing: batches have the state, where more than stateEvery events have come
	// since the last.
	sharing    bool
	stateEvery int

	// The fields below are used by Next alone, under the backend's lock if sharing.
	at        store.Seq
	through   store.Revision // everything up to it was returned
	stateless int            // events returned since the last state

	waiting.Follower
}

// Next returns the changes since the previous call, at most limit; a limit below
// one counts as one.
func (w *watcher) Next(limit int) (backend.Batch, error) {
	limit, after := max(1, limit), w.through
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
	more = w.at < history.Next()
	batch.Events = w.read(history, limit)
	batch.Through = w.through
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
	batch.Through = w.through
	w.stateless += len(batch.Events)
	if w.at == history.Next() && len(batch.Events) > 0 && w.stateless > w.stateEvery {
		batch.State, w.stateless = b.tree.View(), 0
	}
	return batch, nil
}

// gather is read across chunks, so that the batch can have the state. Without a change of
// the state to come, as in a bus, nothing is copied: the events are those of one chunk.
func (w *watcher) gather(history store.WindowView, limit int) []store.Event {
	ahead, change := min(limit, int(history.Next()-w.at)), w.backend.changed > w.through
	events := w.read(history, limit)
	if !change || len(events) == ahead {
		return events
	}
	all := append(make([]store.Event, 0, ahead), events...)
	for len(all) < ahead {
		all = append(all, w.read(history, ahead-len(all))...)
	}
	return all
}

// historyFor returns the history for w to read. If w has read all of it, w joins
// the waiting watches.
func (b *Backend) historyFor(w *watcher) (history store.WindowView, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.historyLocked(w)
}

// historyLocked is historyFor for callers that hold the lock.
func (b *Backend) historyLocked(w *watcher) (history store.WindowView, err error) {
	if b.closed {
		return history, store.ErrClosed
	}
	if oldest := b.compactedTo(); w.through < oldest {
		return history, &store.ExpiredError{Requested: w.through, Oldest: oldest}
	}
	history = b.window.View()
	if history.Next() == w.at {
		b.waiting.Add(&w.Follower)
	}
	return history, nil
}

// read returns the next events of history that w covers, and advances w. Without a
// prefix they are a slice of one chunk of the window, not copied; with a prefix
// read scans up to the end of history.
func (w *watcher) read(history store.WindowView, limit int) []store.Event {
	if w.prefix == "" {
		events, _ := history.Read(w.at)
		n := min(len(events), limit)
		w.advance(history, n)
		return events[:n:n]
	}
	var found []store.Event
	for w.at < history.Next() && len(found) < limit {
		found = w.filter(history, found, limit)
	}
	return found
}

// filter appends to found the events of one chunk that w covers.
func (w *watcher) filter(history store.WindowView, found []store.Event, limit int) []store.Event {
	chunk, _ := history.Read(w.at)
	for i, ev := range chunk {
		if !store.HasPrefix(ev.Key(), w.prefix) {
			continue
		}
		if found = append(found, ev); len(found) == limit {
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
