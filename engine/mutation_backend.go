package engine

import (
	"context"

	"k8s.io/utils/dump"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// detectMutations puts a detector between the engine and its backend if the
// configuration asks for it, and returns what checks everything once more. All
// that anybody can get hold of comes through there, so nothing else in the
// engine knows of it, and without it there is nothing in the way.
func (e *Engine[T]) detectMutations() (audit func()) {
	if !e.cfg.DetectMutations {
		return func() {}
	}
	d := newDetector[T](e.cfg.OnError)
	guarded := &guardedBackend[T]{e.storage.Backend(), d}
	var b backend.Backend[T] = guarded
	if emitter, ok := guarded.Backend.(backend.Emitter[T]); ok {
		b = &guardedEmitter[T]{guarded, emitter}
	}
	e.storage = backend.NewStorage(b, e.schema)
	return d.audit
}

// guardedBackend shows a detector every object that goes through it.
//
//	writes ──▶ ┌────────────────┐ ──▶
//	reads  ◀── │ guardedBackend │ ◀── backend
//	events ◀── └──────┬─────────┘ ◀──
//	                  ▼ objects
//	               detector ──MutationError──▶ Config.OnError
type guardedBackend[T any] struct {
	backend.Backend[T]
	detector *detector[T]
}

// Put has the value compared from before the write: the writer has it, and from
// then on readers may.
func (g *guardedBackend[T]) Put(ctx context.Context, key string, value T, expect store.Revision, opts backend.PutOptions) (*store.Object[T], error) {
	before := dump.ForHash(value)
	o, err := g.Backend.Put(ctx, key, value, expect, opts)
	if err == nil {
		g.detector.wrote(o, before, g.detector.current)
	}
	return o, err
}

// Remove ends the watch over the object as the newest.
func (g *guardedBackend[T]) Remove(ctx context.Context, key string, expect store.Revision) (*store.Object[T], error) {
	o, err := g.Backend.Remove(ctx, key, expect)
	g.detector.locked(func() {
		if err == nil {
			g.detector.gone(key, o.Revision)
		}
	})
	return o, err
}

// Get, and Revision, which comes before cached reads, compare one object each.
func (g *guardedBackend[T]) Get(ctx context.Context, key string) (*store.Object[T], error) {
	o, err := g.Backend.Get(ctx, key)
	g.detector.locked(func() {
		if t := g.detector.known[o]; t != nil {
			g.detector.compare(t)
		}
	})
	return o, err
}

// Revision returns the backend's newest revision.
func (g *guardedBackend[T]) Revision(ctx context.Context) (store.Revision, error) {
	g.detector.locked(func() {})
	return g.Backend.Revision(ctx)
}

// List shows the objects of pages of the newest state.
func (g *guardedBackend[T]) List(ctx context.Context, opts backend.ListOptions) (*backend.List[T], error) {
	page, err := g.Backend.List(ctx, opts)
	if page == nil {
		return nil, err
	}
	g.detector.locked(func() {
		for _, o := range page.Items {
			g.detector.current(o)
		}
	})
	return page, err
}

// Watch shows the events.
func (g *guardedBackend[T]) Watch(ctx context.Context, opts backend.WatchOptions) (backend.Watcher[T], error) {
	w, err := g.Backend.Watch(ctx, opts)
	if err != nil || w == nil {
		return nil, err
	}
	return &guardedWatcher[T]{w, g.detector}, nil
}

type guardedWatcher[T any] struct {
	backend.Watcher[T]
	detector *detector[T]
}

// Next shows the events before anybody else sees them.
func (w *guardedWatcher[T]) Next(max int) (backend.Batch[T], error) {
	batch, err := w.Watcher.Next(max)
	w.detector.locked(func() {
		for _, ev := range batch.Events {
			w.detector.event(ev)
		}
	})
	return batch, err
}

// guardedEmitter is a guardedBackend over one that can emit.
type guardedEmitter[T any] struct {
	*guardedBackend[T]
	emitter backend.Emitter[T]
}

// Emit is to emitted values what Put is to written ones.
func (g *guardedEmitter[T]) Emit(ctx context.Context, key string, value T) (*store.Object[T], error) {
	before := dump.ForHash(value)
	o, err := g.emitter.Emit(ctx, key, value)
	if err == nil {
		g.detector.wrote(o, before, g.detector.emitted)
	}
	return o, err
}

// wrote takes notice of o by how, and reports if its value is not what it was
// before the write.
func (d *detector[T]) wrote(o *store.Object[T], before string, how func(*store.Object[T])) {
	d.locked(func() {
		how(o)
		t := d.known[o]
		if now := dump.ForHash(o.Value); now != before && t != nil && !t.reported {
			t.reported = true
			d.found = append(d.found, &MutationError{o.Key, o.Revision, before, now})
		}
	})
}
