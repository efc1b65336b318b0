package engine_test

import (
	"context"
	"errors"
	"slices"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/memory"
)

var errOutage = errors.New("the network is down")

// moody is a backend that fails when it is told to: its lists and watches can
// be refused, a running watch can break, lose a change or repeat one. It knows
// which changes it has shown as they happened.
type moody struct {
	*memory.Backend[thing]
	traits backend.Traits
	// batch is the most events that a watch hands out at once; zero is no limit.
	batch int
	// failLists and failWatches count the calls that will fail.
	failLists, failWatches int
	// lose and repeat: the next batch that has events lacks one, or has one
	// twice.
	lose, repeat bool
	// stale, if not nil, is the page that the next lists return.
	stale *backend.List[thing]
	// witness is told of each change shown that fits what was shown before.
	witness func(engine.Revision)

	open []*moodyWatch
}

func (b *moody) Traits() backend.Traits { return b.traits }

func (b *moody) List(ctx context.Context, opts backend.ListOptions) (*backend.List[thing], error) {
	if b.failLists > 0 {
		b.failLists--
		return nil, errOutage
	}
	if b.stale != nil {
		return b.stale, nil
	}
	return b.Backend.List(ctx, opts)
}

func (b *moody) Watch(ctx context.Context, opts backend.WatchOptions) (backend.Watcher[thing], error) {
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
	b.failLists, b.failWatches, b.lose, b.repeat, b.stale = 0, 0, false, false, nil
}

// moodyWatch is a watch of moody.
type moodyWatch struct {
	backend.Watcher[thing]
	backend *moody
	notify  func()
	broken  error
}

func (w *moodyWatch) Next(limit int) (backend.Batch[thing], error) {
	if w.broken != nil {
		return backend.Batch[thing]{}, w.broken
	}
	if w.backend.batch > 0 {
		limit = w.backend.batch
	}
	batch, err := w.Watcher.Next(limit)
	if err != nil || len(batch.Events) == 0 {
		return batch, err
	}
	batch, sound := w.backend.spoil(batch)
	if w.backend.witness != nil {
		for _, ev := range batch.Events[:sound] {
			w.backend.witness(ev.Revision)
		}
	}
	return batch, nil
}

// spoil loses or repeats an event of the batch, if that is wanted, and returns
// how many events of it still fit.
func (b *moody) spoil(batch backend.Batch[thing]) (backend.Batch[thing], int) {
	middle := len(batch.Events) / 2
	switch {
	case b.lose:
		b.lose = false
		batch.Events = slices.Delete(slices.Clone(batch.Events), middle, middle+1)
		return batch, middle
	case b.repeat:
		b.repeat = false
		batch.Events = slices.Insert(slices.Clone(batch.Events), middle, batch.Events[middle])
		return batch, middle + 1
	}
	return batch, len(batch.Events)
}

func (w *moodyWatch) Close() {
	w.backend.open = slices.DeleteFunc(w.backend.open, func(other *moodyWatch) bool { return other == w })
	w.Watcher.Close()
}

var _ backend.Emitter[thing] = (*moody)(nil)

// newMoody returns a moody backend over an empty one in memory.
func newMoody(clock backend.Clock) *moody {
	c := thingConfig()
	b, err := memory.New(store.Schema[thing]{Key: c.Key, Labels: c.Labels, Fields: c.Fields}, memory.Options{Clock: clock})
	if err != nil {
		panic(err) // the options are constant
	}
	return &moody{Backend: b, traits: b.Traits()}
}
