package engine_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/faulty"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// counted is storage that counts the watches that are open.
type counted struct {
	backend.Backend
	watches *int
}

func (c counted) Watch(ctx context.Context, opts backend.WatchOptions) (backend.Watcher, error) {
	w, err := c.Backend.Watch(ctx, opts)
	if err == nil {
		*c.watches++
		w = &countedWatcher{Watcher: w, watches: c.watches}
	}
	return w, err
}

type countedWatcher struct {
	backend.Watcher
	watches *int
	closed  bool
}

func (w *countedWatcher) Close() {
	if !w.closed {
		w.closed = true
		*w.watches--
	}
	w.Watcher.Close()
}

// Only after the storage's watch is open can the engine know that it is of the right storage.
func TestNoCache_WatchThatIsRefusedLeavesNoneInStorage(t *testing.T) {
	elsewhere, err := uncached(t).Timeline(t.Context())
	require.NoError(t, err)
	c, open := cfg(), 0
	inner, err := memory.New(c.Schema(), memory.Options{})
	require.NoError(t, err)
	c.NoCache, c.Backend, c.FirstRevision = true, counted{inner, &open}, 0
	e, err := engine.New(c)
	require.NoError(t, err)
	o, err := e.Create(t.Context(), pod{Name: "a"})
	require.NoError(t, err)
	_, err = e.Watch(t.Context(), engine.WatchOptions{From: o.Revision, Timeline: elsewhere})
	require.ErrorIs(t, err, engine.ErrExpired)
	require.Zero(t, open)
	require.NoError(t, e.Close())
	require.NoError(t, inner.Close())
}

// The engine is closed when the storage's watch has just been opened.
func TestNoCache_WatchDuringWhichTheEngineIsClosedLeavesNoneInStorage(t *testing.T) {
	c, open := cfg(), 0
	inner, err := memory.New(c.Schema(), memory.Options{})
	require.NoError(t, err)
	storage := faulty.New(counted{inner, &open}, faulty.Options{})
	c.NoCache, c.Backend, c.FirstRevision = true, storage, 0
	e, err := engine.New(c)
	require.NoError(t, err)
	storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpWatch}, Do: faulty.After(func(context.Context, *faulty.Call) {
		require.NoError(t, e.Close())
	})})
	_, err = e.Watch(t.Context(), engine.WatchOptions{})
	require.ErrorIs(t, err, engine.ErrEngineClosed)
	require.Zero(t, open)
	require.NoError(t, storage.Close())
}

// A watch that storage refuses is none of the engine's.
func TestNoCache_WatchThatStorageRefusesIsNotAmongTheRunning(t *testing.T) {
	f := newReadFixture(t, func(c *engine.Config[pod]) { c.NoCache = true })
	f.storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpWatch}, Do: faulty.Fail(errDown)})
	_, err := f.Watch(t.Context(), engine.WatchOptions{})
	require.ErrorIs(t, err, errDown)
	require.Empty(t, f.Watches())
	require.Zero(t, f.Stats().Watches)
}
