package engine

import (
	"context"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// WriterOf returns the engine's backend for packages that need the object that a write
// replaces, which the typed methods do not show. Its writes count as the engine's: they
// fail with [ErrDraining] and [ErrEngineClosed], and Drain and Lag include them. Writes to
// [Engine.Backend] do not.
func WriterOf[T any](e *Engine[T]) backend.Backend { return e.core.writer() }

// CachedOf returns a function that returns the object that the engine's cache has under a key now,
// nil if there is none or the cache has not been filled. It is for backends below the engine whose
// objects cost something to make, but may be in the cache. The function does not block, never calls
// the backend, and is safe for concurrent use.
func CachedOf[T any](e *Engine[T]) func(key string) *store.Object { return e.core.inCache }

func (e *core) inCache(key string) *store.Object { return e.published.Load().Get(key) }

// writer is the backend, whose writes fail when the engine is draining or closed.
type writer struct {
	backend.Backend
	engine *core
}

func (e *core) writer() backend.Backend { return writer{e.storage.Backend(), e} }

// Unwrap returns the backend itself.
func (w writer) Unwrap() backend.Backend { return w.Backend }

// Get fails with [ErrEngineClosed] once the engine is closed.
func (w writer) Get(ctx context.Context, key string) (*store.Object, error) {
	if err := w.engine.alive(); err != nil {
		return nil, err
	}
	o, err := w.Backend.Get(ctx, key)
	return o, w.engine.translateStorage(err)
}

func (w writer) Put(ctx context.Context, draft, prev *store.Object, opts backend.PutOptions) (*store.Object, error) {
	if err := w.engine.accepts(); err != nil {
		return nil, err
	}
	return w.engine.beginWrite(ctx).acknowledge(w.Backend.Put(ctx, draft, prev, opts))
}

func (w writer) Remove(ctx context.Context, prev *store.Object) (*store.Object, error) {
	if err := w.engine.accepts(); err != nil {
		return nil, err
	}
	return w.engine.beginWrite(ctx).acknowledge(w.Backend.Remove(ctx, prev))
}

func (w writer) Compact(ctx context.Context, rev store.Revision) error {
	return w.engine.compact(ctx, rev)
}
