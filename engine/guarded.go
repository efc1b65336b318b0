package engine

import (
	"context"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// WriterOf returns the engine's backend for packages that write by rules of their own
// and need what the typed methods do not show, the object that is replaced. Its calls
// are the engine's: they are refused with [ErrDraining] and [ErrEngineClosed], and
// Drain and Lag count what they write. [Engine.Backend] goes around all that.
func WriterOf[T any](e *Engine[T]) backend.Backend { return e.core.guarded() }

// guarded is the backend with the engine's rules for who may write.
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
	return g.Backend.Get(ctx, key)
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
