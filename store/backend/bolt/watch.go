package bolt

import (
	"context"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/internal/place"
	"github.com/watchmill/watchmill/store/backend/internal/waiting"
	"github.com/watchmill/watchmill/store/window"
)

// Watch starts a watch after opts.From, which may be from before the file was opened. A
// watch that is behind the history in memory reads the file, in goroutines that run
// only while there is something to read ahead.
//
// Errors: [*store.ExpiredError] if opts.From is too old, [*store.FutureError] if it has not
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
	if err := opts.Check(b.oldest(), b.revision); err != nil {
		return nil, err
	}
	w := &watcher{
		backend: b, Place: place.Place{Prefix: opts.Prefix, Through: opts.From},
		sharing: opts.State && opts.Prefix == "", noPrev: opts.NoPrev,
	}
	w.Init(opts.Notify)
	if w.Through == 0 {
		w.Through = b.revision
	}
	if w.Through < b.window.View().Floor() {
		w.cold = newColdReader(w)
		return w, nil
	}
	var err error
	w.At, err = b.window.View().Seek(w.Through)
	return w, err
}

// watcher is a position in the history: in the file while cold is not nil, then in
// memory.
type watcher struct {
	backend *Backend
	// sharing: the newest events come with the state.
	sharing bool
	// noPrev: the consumer knows the state before each event, until it has been given
	// a state, which is that after all events with it.
	noPrev bool

	// Only Next uses them.
	place.Place
	cold *coldReader

	waiting.Follower
}

// Next returns at most limit changes since the previous call; less than one counts as
// one.
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

// next makes one attempt. Without events, more means that another attempt may return
// some; otherwise the consumer will be notified.
func (w *watcher) next(limit int) (batch backend.Batch, more bool, err error) {
	b := w.backend
	if w.cold != nil || w.sharing {
		b.mu.Lock()
		defer b.mu.Unlock()
	}
	if w.cold != nil {
		batch.Events, more, err = w.readAhead(limit)
	} else {
		batch.Events, more, err = w.readOn(limit)
	}
	batch.Through = w.Through
	if err == nil && w.sharing && len(batch.Events) > 0 && w.Through == b.revision {
		batch.State, w.noPrev = b.tree.View(), false
	}
	return batch, more, err
}

// readOn reads the history in memory.
func (w *watcher) readOn(limit int) (events []store.Event, more bool, err error) {
	history, err := w.backend.historyFor(w)
	if err != nil || w.cold != nil {
		return nil, true, err
	}
	more = w.At < history.Next()
	events = w.Read(history, limit)
	for w.sharing && w.At < history.Next() && len(events) < limit {
		events = append(events, w.Read(history, limit-len(events))...)
	}
	return events, more, nil
}

// historyFor returns the history in memory for w to read. If w has read all of it, w joins
// the waiting watches; if what w reads next is not in memory any more, w becomes cold. It
// takes the lock, unless w is sharing: then the caller holds it.
func (b *Backend) historyFor(w *watcher) (history window.View, err error) {
	if !w.sharing {
		b.mu.Lock()
		defer b.mu.Unlock()
	}
	if err := b.reaches(w); err != nil {
		return history, err
	}
	history = b.window.View()
	if w.Through < history.Floor() {
		w.cold = newColdReader(w)
		return history, nil
	}
	if history.Next() == w.At {
		b.waiting.Add(&w.Follower)
	}
	return history, nil
}

// reaches returns why w cannot continue: the history that it needs is discarded, or b is
// closed. The caller holds the lock, under which the floor is raised.
func (b *Backend) reaches(w *watcher) error {
	if b.closed {
		return store.ErrClosed
	}
	if oldest := b.oldest(); w.Through < oldest {
		return &store.ExpiredError{Requested: w.Through, Oldest: oldest}
	}
	return nil
}

// readAhead returns events that were read from the file. The caller holds the
// lock.
func (w *watcher) readAhead(limit int) (events []store.Event, more bool, err error) {
	b, c := w.backend, w.cold
	if err := b.reaches(w); err != nil {
		return nil, false, err
	}
	events, through, done, err := c.take(limit)
	if err != nil {
		return nil, false, err
	}
	w.Through = through
	history := b.window.View()
	if done && w.Through >= history.Floor() {
		w.cold = nil
		w.At, err = history.Seek(w.Through)
		return events, true, err
	}
	if c.low() {
		c.start()
	}
	return events, false, nil
}

// Close ends the watch. It waits for a notification that is running, so it must
// not be called from one.
func (w *watcher) Close() { w.Follower.Close(&w.backend.mu, &w.backend.waiting) }
