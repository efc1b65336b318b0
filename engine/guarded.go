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
func WriterOf[T any](e *Engine[T]) backend.Backend { return e.core.guarded() }

// guarded is the backend, whose writes fail when the engine is draining or closed.
type guarded struct {
	backend.Backend
	engine *core
}

func (e *core) guarded() backend.Backend { return guarded{e.storage.Backend(), e} }

// Unwrap returns the backend itself.
func (g guarded) Unwrap() backend.Backend { return g.Backend }

func (g guarded) Get(ctx context.Context, key string) (*store.Object, error) {
	if err := g.engine.alive(); err != nil {
		return nil, err
	}
	o, err := g.Backend.Get(ctx, key)
	return o, g.engine.why(err)
}

func (g guarded) Put(ctx context.Context, draft, prev *store.Object, opts backend.PutOptions) (*store.Object, error) {
	if err := g.engine.accepts(); err != nil {
		return nil, err
	}
	return g.engine.acknowledge(g.Backend.Put(ctx, draft, prev, opts))
}

func (g guarded) Remove(ctx context.Context, prev *store.Object) (*store.Object, error) {
	if err := g.engine.accepts(); err != nil {
		return nil, err
	}
	return g.engine.acknowledge(g.Backend.Remove(ctx, prev))
}

func (g guarded) Compact(ctx context.Context, rev store.Revision) error {
	return g.engine.compact(ctx, rev)
}
