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

// moody is a backend that fails when it is told to: its lists and watches can
// be refused, a running watch can break, lose a change or repeat one.
type moody struct {
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

	open []*moodyWatch
}

func (b *moody) Traits() backend.Traits { return b.traits }

func (b *moody) List(ctx context.Context, opts backend.ListOptions) (*backend.List, error) {
	if b.failLists > 0 {
		b.failLists--
		return nil, errOutage
	}
	if b.stale != nil {
		return b.stale, nil
	}
	return b.Backend.List(ctx, opts)
}

func (b *moody) Watch(ctx context.Context, opts backend.WatchOptions) (backend.Watcher, error) {
	if b.failWatches > 0 {
		b.failWatches--
		return nil, errOutage
	}
	inner, err := b.Backend.Watch(ctx, opts)
	if err != nil {
		return nil, err
	}
	w := &moodyWatch{Watcher: inner, backend: b, notify: opts.Notify}
	b.open = append(b.open, w)
	return w, nil
}

// sever ends the running watches with err.
func (b *moody) sever(err error) {
	for _, w := range slices.Clone(b.open) {
		w.broken = err
		w.notify()
	}
}

// heal makes the backend good from now on.
func (b *moody) heal() {
	b.failLists, b.failWatches, b.stale, b.Mishaps = 0, 0, nil, mishap.Mishaps{}
}

// moodyWatch is a watch of moody.
type moodyWatch struct {
	backend.Watcher
	backend *moody
	notify  func()
	broken  error
}

func (w *moodyWatch) Next(limit int) (backend.Batch, error) {
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

func (w *moodyWatch) Close() {
	w.backend.open = slices.DeleteFunc(w.backend.open, func(other *moodyWatch) bool { return other == w })
	w.Watcher.Close()
}

var (
	_ backend.Backend = (*moody)(nil)
	_ backend.Emitter = (*moody)(nil)
)

// newMoody returns a moody backend over an empty one in memory.
func newMoody(clock backend.Clock) *moody {
	b, err := memory.New(thingConfig().Schema(), memory.Options{Clock: clock})
	if err != nil {
		panic(err) // the options are constant
	}
	return &moody{Backend: b, traits: b.Traits()}
}
