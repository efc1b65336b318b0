package engine_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// overStorage returns an engine whose cache is off, and its storage.
func overStorage(t *testing.T) (*engine.Engine[pod], *memory.Backend) {
	t.Helper()
	beneath, err := memory.New(cfg().Schema(), memory.Options{})
	require.NoError(t, err)
	c := cfgOver(beneath)
	c.NoCache = true
	e, err := engine.New(c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, errors.Join(e.Close(), beneath.Close())) })
	return e, beneath
}

// Without a cache nothing follows storage, so whichever call is the first to fail shows its end.
func TestNoCache_AnyCallShowsThatStorageHasEnded(t *testing.T) {
	same := func(p pod) (pod, error) { return p, nil }
	for name, call := range map[string]func(context.Context, *engine.Engine[pod]) (any, error){
		"Create": func(ctx context.Context, e *engine.Engine[pod]) (any, error) { return e.Create(ctx, pod{Name: "a"}) },
		"Put":    func(ctx context.Context, e *engine.Engine[pod]) (any, error) { return e.Put(ctx, pod{Name: "a"}) },
		"Update": func(ctx context.Context, e *engine.Engine[pod]) (any, error) {
			return e.Update(ctx, "a", same, engine.UpdateOptions{})
		},
		"Modify": func(ctx context.Context, e *engine.Engine[pod]) (any, error) {
			change := func(*engine.Object[pod]) (c engine.Change[pod], err error) { return c, nil }
			return e.Modify(ctx, "a", change, engine.ModifyOptions{})
		},
		"Delete": func(ctx context.Context, e *engine.Engine[pod]) (any, error) {
			return e.Delete(ctx, "a", engine.DeleteOptions{})
		},
		"Emit":       func(ctx context.Context, e *engine.Engine[pod]) (any, error) { return e.Emit(ctx, pod{Name: "a"}) },
		"Compact":    func(ctx context.Context, e *engine.Engine[pod]) (any, error) { return nil, e.Compact(ctx, 1) },
		"Checkpoint": func(ctx context.Context, e *engine.Engine[pod]) (any, error) { return e.Checkpoint(ctx, 1) },
		"Timeline":   func(ctx context.Context, e *engine.Engine[pod]) (any, error) { return e.Timeline(ctx) },
		"Get": func(ctx context.Context, e *engine.Engine[pod]) (any, error) {
			return e.Get(ctx, "a", engine.GetOptions{})
		},
		"List": func(ctx context.Context, e *engine.Engine[pod]) (any, error) {
			return e.List(ctx, engine.ListOptions{})
		},
		"Watch": func(ctx context.Context, e *engine.Engine[pod]) (any, error) {
			return e.Watch(ctx, engine.WatchOptions{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, storage := overStorage(t)
			require.NoError(t, storage.Close())
			require.True(t, e.Readiness().Ready, "no call has been made")
			_, err := call(t.Context(), e)
			require.ErrorIs(t, err, store.ErrClosed)
			require.Equal(t, engine.Readiness{Ended: true}, e.Readiness())
		})
	}
}

// The error of a write may be that of the caller's function, about something else that is closed.
func TestNoCache_StorageHasNotEndedIfTheCallersFunctionSaysClosed(t *testing.T) {
	e, _ := overStorage(t)
	_, err := e.Put(t.Context(), pod{Name: "a"})
	require.NoError(t, err)
	_, err = e.Update(t.Context(), "a", func(p pod) (pod, error) { return p, store.ErrClosed }, engine.UpdateOptions{})
	require.ErrorIs(t, err, store.ErrClosed)
	require.Equal(t, engine.Readiness{Ready: true}, e.Readiness())
}
