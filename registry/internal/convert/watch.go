package convert

import (
	"context"
	"slices"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// Watch starts a watch; see [backend.ListerWatcher].
func (b *Backend) Watch(ctx context.Context, opts backend.WatchOptions) (backend.Watcher, error) {
	w, err := b.Backend.Watch(ctx, opts)
	if err != nil {
		return nil, err
	}
	shown := &watcher{w, b}
	if id, knows := w.(backend.Identifier); knows {
		return &identifiedWatcher{shown, id}, nil
	}
	return shown, nil
}

// identifiedWatcher is a watcher over one that knows which storage it is of.
type identifiedWatcher struct {
	*watcher
	backend.Identifier
}

// watcher shows the objects of events.
type watcher struct {
	backend.Watcher
	of *Backend
}

// RequestProgress passes the request on.
func (w *watcher) RequestProgress(ctx context.Context) error {
	return backend.RequestProgress(ctx, w.Watcher)
}

// Next returns the next events. Storage's own state is in the batch only if all objects in it have
// the right form. Without it the cache applies the events itself.
func (w *watcher) Next(limit int) (backend.Batch, error) {
	batch, err := w.Watcher.Next(limit)
	if err != nil {
		return batch, err
	}
	owned := false
	for i, ev := range batch.Events {
		shown, err := w.shown(ev)
		if err != nil {
			return backend.Batch{}, err
		}
		if shown == ev {
			continue
		}
		if !owned {
			batch.Events, owned = slices.Clone(batch.Events), true
		}
		batch.Events[i] = shown
		if shown.Object != ev.Object {
			w.of.differs.Store(true)
		}
	}
	if w.of.differs.Load() {
		batch.State = nil
	}
	return batch, nil
}

// shown returns an event with its objects as they are shown. A deletion without the state before
// it may have no value.
func (w *watcher) shown(ev store.Event) (store.Event, error) {
	if ev.Object == nil || ev.Type == store.Deleted && ev.Prev == nil {
		return ev, nil
	}
	var err error
	if ev.Object, err = w.of.FromStorage(ev.Object); err == nil && ev.Prev != nil {
		ev.Prev, err = w.of.FromStorage(ev.Prev)
	}
	return ev, err
}
