package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store/backend/faulty"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// What is written right after New is followed by more, so that the cache's first list
// is newer. A watch from the write has what came after it all the same.
func TestOwnWrite_IsWatchedFromWhileTheCacheStarts(t *testing.T) {
	for range 300 {
		e, err := engine.New(cfg())
		require.NoError(t, err)
		mine, err := e.Create(t.Context(), pod{Name: "a"})
		require.NoError(t, err)
		last, err := e.Create(t.Context(), pod{Name: "b"})
		require.NoError(t, err)
		w, err := e.Watch(t.Context(), engine.WatchOptions{From: mine.Revision})
		require.NoError(t, err)
		require.Len(t, until(t, t.Context(), w, last.Revision), 1)
		_, err = e.Get(t.Context(), "a", engine.GetOptions{Read: engine.NotOlderThan(mine.Revision)})
		require.NoError(t, err)
		require.NoError(t, e.Close())
	}
}

// A backend takes its time for the first list. What asks meanwhile for the state since
// a write waits, but not longer than FreshnessTimeout.
func TestOwnWrite_WaitsForASlowFirstList(t *testing.T) {
	const timeout = 2 * time.Second
	slow := func(name string, takes time.Duration, test func(t *testing.T, e *engine.Engine[pod], mine, last engine.Revision)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner, err := memory.New(cfg().Schema(), memory.Options{})
				require.NoError(t, err)
				storage := faulty.New(inner, faulty.Options{Blocks: takes > timeout})
				storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpList}, Times: 1, Do: faulty.Delay(takes)})
				c := cfgOver(storage)
				c.FreshnessTimeout = timeout
				e, err := engine.New(c)
				require.NoError(t, err)
				mine, err := e.Create(t.Context(), pod{Name: "a"})
				require.NoError(t, err)
				last, err := e.Create(t.Context(), pod{Name: "b"})
				require.NoError(t, err)
				test(t, e, mine.Revision, last.Revision)
				require.NoError(t, e.Close())
				require.NoError(t, storage.Close())
			})
		})
	}
	slow("watch", time.Second, func(t *testing.T, e *engine.Engine[pod], mine, last engine.Revision) {
		w, err := e.Watch(t.Context(), engine.WatchOptions{From: mine})
		require.NoError(t, err)
		require.Len(t, until(t, t.Context(), w, last), 1)
	})
	slow("read", time.Second, func(t *testing.T, e *engine.Engine[pod], mine, _ engine.Revision) {
		l, err := e.List(t.Context(), engine.ListOptions{Labels: "app!=db", Read: engine.NotOlderThan(mine)})
		require.NoError(t, err)
		require.Len(t, l.Items, 2)
	})
	slow("too long", time.Minute, func(t *testing.T, e *engine.Engine[pod], mine, _ engine.Revision) {
		_, err := e.Watch(t.Context(), engine.WatchOptions{From: mine})
		require.ErrorIs(t, err, engine.ErrNotReady)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = e.Watch(ctx, engine.WatchOptions{From: mine})
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

// Storage may have gone back to before a write when that returns. What was written since counts all the same.
func TestOwnWrite_ThatStorageHasLostForgetsNoLaterOne(t *testing.T) {
	f := newReadFixture(t)
	for n := range 5 {
		f.put("a", "web", n)
	}
	f.storage.Add(faulty.Rule{Ops: faulty.Writes, Times: 1, Do: faulty.After(func(context.Context, *faulty.Call) {
		f.goBack()
		f.storage.BreakWatches(nil)
		f.pass(10 * time.Second)
		f.setHeld(true)
		f.put("b", "web", 1)
	})})
	lost, err := f.Put(t.Context(), pod{Name: "a", N: 7})
	require.NoError(t, err)
	require.Greater(t, lost.Revision, f.Revision())
	w, err := f.Watch(t.Context(), engine.WatchOptions{From: f.Revision()})
	require.NoError(t, err)
	require.EqualValues(t, 1, w.Lag())
}
