package enginetest

import (
	"context"
	"slices"
	"sync"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// Watch starts a watch that faults can be done to, unless it is to fail.
func (s *source) Watch(ctx context.Context, opts backend.WatchOptions) (backend.Watcher, error) {
	s.mu.Lock()
	s.watchCalls++
	err := s.watches.next()
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if opts.From == 0 { // from now on; a stalled watch has to say when that was
		if opts.From, err = s.memory.Revision(ctx); err != nil {
			return nil, err
		}
	}
	w := &sourceWatcher{source: s, tell: opts.Notify, at: opts.From}
	if opts.Notify != nil {
		opts.Notify = w.notify
	}
	if w.memory, err = s.memory.Watch(ctx, opts); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = append(s.running, w)
	return w, nil
}

// sourceWatcher is a watch on the memory with faults.
type sourceWatcher struct {
	source *source
	memory backend.Watcher

	// telling is held while tell runs, so that Close waits for it.
	telling sync.Mutex
	tell    func()
	closed  bool

	mu     sync.Mutex // guards what follows
	broken error
	last   store.Event
	again  bool           // last is to be delivered once more
	at     store.Revision // what was delivered last
}

// notify tells the reader that there is something, unless nothing may be told.
func (w *sourceWatcher) notify() {
	if w.source.isStalled() {
		return
	}
	w.telling.Lock()
	defer w.telling.Unlock()
	if !w.closed {
		w.tell()
	}
}

// Next returns the changes since the call before, as far as they are to be seen.
func (w *sourceWatcher) Next(max int) (backend.Batch, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.broken != nil:
		return backend.Batch{}, w.broken
	case w.source.isStalled():
		return backend.Batch{After: w.at, Through: w.at}, nil
	case w.again:
		w.again = false
		return backend.Batch{After: w.at, Through: w.at, Events: []store.Event{w.last}}, nil
	}
	batch, err := w.source.visible(w.memory, max)
	if err == nil {
		w.at = batch.Through
		if n := len(batch.Events); n > 0 {
			w.last = batch.Events[n-1]
		}
	}
	return batch, err
}

// visible reads from a watch and leaves out what is hidden.
func (s *source) visible(w backend.Watcher, max int) (backend.Batch, error) {
	s.hiding.RLock()
	defer s.hiding.RUnlock()
	batch, err := w.Next(max)
	s.mu.Lock()
	defer s.mu.Unlock()
	isHidden := func(ev store.Event) bool { return s.hidden[ev.Revision] }
	if slices.ContainsFunc(batch.Events, isHidden) {
		batch.Events = slices.DeleteFunc(slices.Clone(batch.Events), isHidden)
	}
	return batch, err
}

// fail breaks the watch.
func (w *sourceWatcher) fail(err error) {
	w.mu.Lock()
	if w.broken == nil {
		w.broken = err
	}
	w.mu.Unlock()
	w.notify()
}

// repeat has the last event delivered once more, if there was one.
func (w *sourceWatcher) repeat() {
	w.mu.Lock()
	w.again = w.last.Object != nil
	w.mu.Unlock()
	w.notify()
}

// Close ends the watch. It waits for a notification that is running.
func (w *sourceWatcher) Close() {
	w.telling.Lock()
	w.closed = true
	w.telling.Unlock()
	w.memory.Close()
	w.mu.Lock()
	if w.broken == nil {
		w.broken = store.ErrClosed
	}
	w.mu.Unlock()
	w.source.forget(w)
}

func (s *source) forget(w *sourceWatcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = slices.DeleteFunc(s.running, func(other *sourceWatcher) bool { return other == w })
}
