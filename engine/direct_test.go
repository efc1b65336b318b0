package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
)

// uncached returns an engine whose cache is off.
func uncached(t *testing.T) *engine.Engine[pod] {
	t.Helper()
	c := cfg()
	c.Capacity = new(0)
	e, err := engine.New(c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

func TestCapacityZero_WatchIsServedByTheBackend(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	e := uncached(t)
	_, err := e.Create(ctx, pod{Name: "a", App: "web"})
	require.NoError(t, err)

	w, err := e.Watch(ctx, engine.WatchOptions{Labels: "app=web", InitialState: true, Bookmarks: true})
	require.NoError(t, err)
	_, err = e.Create(ctx, pod{Name: "b", App: "db"})
	require.NoError(t, err)
	_, err = e.Create(ctx, pod{Name: "c", App: "web"})
	require.NoError(t, err)
	_, err = e.Put(ctx, pod{Name: "c", App: "db"})
	require.NoError(t, err)

	var seen []string
	for ev, err := range w.Events() {
		require.NoError(t, err)
		seen = append(seen, ev.String())
		if ev.Type == engine.Deleted {
			break
		}
	}
	require.Equal(t, []string{"ADDED a@2 initial", "BOOKMARK@2 initial-end", "ADDED c@4", "DELETED c@5"}, seen)
	w.Stop()
	_, err = w.Next(ctx)
	require.ErrorIs(t, err, engine.ErrStopped)
}

func TestCapacityZero_SlowConsumerLosesNothing(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	e := uncached(t)
	w, err := e.Watch(ctx, engine.WatchOptions{Buffer: 10})
	require.NoError(t, err)
	var last engine.Revision
	for i := range 2000 {
		last, err = e.Put(ctx, pod{Name: "a", N: i})
		require.NoError(t, err)
	}
	next := 0
	for ev, err := range w.Events() {
		require.NoError(t, err)
		require.Equal(t, next, ev.Object.Value.N)
		next++
		if ev.Revision == last {
			break
		}
	}
	require.Equal(t, 2000, next)
}

func TestCapacityZero_CloseEndsTheWatch(t *testing.T) {
	c := cfg()
	c.Capacity = new(0)
	e, err := engine.New(c)
	require.NoError(t, err)
	w, err := e.Watch(t.Context(), engine.WatchOptions{})
	require.NoError(t, err)
	require.NoError(t, e.Close())
	<-w.Done()
	require.ErrorIs(t, w.Err(), engine.ErrEngineClosed)
}
