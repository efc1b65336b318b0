package engine_test

import (
	"context"
	"errors"
	"slices"

	"github.com/watchmill/watchmill/sim/mishap"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/memory"
)

var errOutage = errors.New("the network is down")

// faultyBackend is a backend that fails when it is told to: its lists and watches can
// be refused, a running watch can break, lose a change or repeat one.
type faultyBackend struct {
	*memory.Backend
	traits backend.Traits
	// batch is the most events that a watch hands out at once; zero is no limit.
	batch int
	// failLists and failWatches count the calls that will fail.
	failLists, failWatches int
	mishap.Mishaps
	// stale, if not nil, is the page that the next lists return.
	stale *backend.List
	// given is told of each batch that a watch hands out.
	given func(backend.Batch)

	open []*faultyWatch
}

func (b *faultyBackend) Traits() backend.Traits { return b.traits }

func (b *faultyBackend) List(ctx context.Context, opts backend.ListOptions) (*backend.List, error) {
	if b.failLists > 0 {
		b.failLists--
		return nil, errOutage
	}
	if b.stale != nil {
		return b.stale, nil
	}
	return b.Backend.List(ctx, opts)
}

func (b *faultyBackend) Watch(ctx context.Context, opts backend.WatchOptions) (backend.Watcher, error) {
	if b.failWatches > 0 {
		b.failWatches--
		return nil, errOutage
	}
	inner, err := b.Backend.Watch(ctx, opts)
	if err != nil {
		return nil, err
	}
	w := &faultyWatch{Watcher: inner, backend: b, notify: opts.Notify}
	b.open = append(b.open, w)
	return w, nil
}

// sever ends the running watches with err.
func (b *faultyBackend) sever(err error) {
	for _, w := range slices.Clone(b.open) {
		w.broken = err
		w.notify()
	}
}

// heal makes the backend good from now on.
func (b *faultyBackend) heal() {
	b.failLists, b.failWatches, b.stale, b.Mishaps = 0, 0, nil, mishap.Mishaps{}
}

// faultyWatch is a watch of faultyBackend.
type faultyWatch struct {
	backend.Watcher
	backend *faultyBackend
	notify  func()
	broken  error
}

func (w *faultyWatch) Next(limit int) (backend.Batch, error) {
	if w.broken != nil {
		return backend.Batch{}, w.broken
	}
	if w.backend.batch > 0 {
		limit = w.backend.batch
	}
	batch, err := w.Watcher.Next(limit)
	if err != nil || len(batch.Events) == 0 {
		return batch, err
	}
	batch = mishap.Spoil(&w.backend.Mishaps, batch)
	if w.backend.given != nil {
		w.backend.given(batch)
	}
	return batch, nil
}

func (w *faultyWatch) Close() {
	w.backend.open = slices.DeleteFunc(w.backend.open, func(other *faultyWatch) bool { return other == w })
	w.Watcher.Close()
}

var (
	_ backend.Backend = (*faultyBackend)(nil)
	_ backend.Emitter = (*faultyBackend)(nil)
)

// newFaultyBackend returns a faultyBackend backend over an empty one in memory.
func newFaultyBackend(clock backend.Clock) *faultyBackend {
	b, err := memory.New(thingConfig().Schema(), memory.Options{Clock: clock})
	if err != nil {
		panic(err) // the options are constant
	}
	return &faultyBackend{Backend: b, traits: b.Traits()}
}
