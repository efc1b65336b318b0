package storage

import (
	"context"
	"slices"
	"sync"

	"github.com/watchmill/watchmill/sim/scenario"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// Watch starts a watch that faults can strike. The engine has one at a time. If
// it starts beyond what the one before has delivered, the engine has listed in
// between, and will never see what is in the gap.
func (s *Storage) Watch(ctx context.Context, opts backend.WatchOptions) (backend.Watcher, error) {
	if err := s.meet(ctx, scenario.OnWatch); err != nil {
		return nil, err
	}
	w := &watch{storage: s, at: opts.From, tell: opts.Notify}
	if opts.Notify != nil {
		opts.Notify = w.notify
	}
	inner, err := s.Backend.Watch(ctx, opts)
	if err != nil {
		return nil, err
	}
	w.inner = inner
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = append(s.running, w)
	if s.through > 0 && opts.From > s.through {
		s.ledger.Gap(s.through, opts.From)
	}
	s.through = max(s.through, opts.From)
	return w, nil
}

// breakWatches ends the watches that run with err, and returns how many.
func (s *Storage) breakWatches(err error) int {
	s.mu.Lock()
	running := slices.Clone(s.running)
	s.mu.Unlock()
	for _, w := range running {
		w.fail(err)
	}
	return len(running)
}

// watch is the engine's watch on the storage.
type watch struct {
	storage *Storage
	inner   backend.Watcher

	// telling is held while tell runs, so that Close waits for it.
	telling sync.Mutex
	tell    func()
	closed  bool

	mu     sync.Mutex // guards what follows
	broken error
	at     store.Revision // what was delivered last
	silent bool           // until a fault is over
}

func (w *watch) notify() {
	w.telling.Lock()
	defer w.telling.Unlock()
	if !w.closed {
		w.tell()
	}
}

// Next returns the next changes, unless a fault strikes it. It must not wait, so
// one that sticks returns nothing.
func (w *watch) Next(most int) (backend.Batch, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.strike(); err != nil {
		return backend.Batch{}, err
	}
	if w.silent {
		return backend.Batch{After: w.at, Through: w.at}, nil
	}
	batch, err := w.inner.Next(most)
	if err == nil {
		w.at = batch.Through
		w.storage.passed(batch.Through)
	}
	return batch, err
}

// strike takes a Next through the faults that strike it.
func (w *watch) strike() error {
	if w.broken != nil || w.silent {
		return w.broken
	}
	for _, st := range w.storage.striking(scenario.OnNext) {
		switch st.fault.Kind {
		case scenario.FaultFail:
			w.broken = ErrInjected
			return ErrInjected
		case scenario.FaultStick:
			w.silent = true
			go w.wakeAfter(st) // the fault ends with the load, if not before
			return nil
		}
	}
	return nil
}

// wakeAfter ends a silence with its fault.
func (w *watch) wakeAfter(st *Strike) {
	<-st.over
	w.mu.Lock()
	w.silent = false
	w.mu.Unlock()
	w.notify()
}

// passed notes what the engine has been given.
func (s *Storage) passed(through store.Revision) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.through = max(s.through, through)
}

func (w *watch) fail(err error) {
	w.mu.Lock()
	if w.broken == nil {
		w.broken = err
	}
	w.mu.Unlock()
	w.notify()
}

// Close ends the watch. It waits for a notification that is running.
func (w *watch) Close() {
	w.telling.Lock()
	w.closed = true
	w.telling.Unlock()
	w.inner.Close()
	s := w.storage
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = slices.DeleteFunc(s.running, func(other *watch) bool { return other == w })
}
