package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
)

// Wait returns when the handler has returned for the last time, and no call begins
// after it.
func TestWait_ReturnsWhenTheLastCallIsOver(t *testing.T) {
	for name, onPool := range map[string]bool{"goroutine": false, "pool": true} {
		t.Run(name, func(t *testing.T) {
			e, ctx := newEngine(t, nil)
			stop, writing := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(writing)
				for n := 1; ; n++ {
					select {
					case <-stop:
						return
					default:
						_, _ = e.Put(ctx, pod{Name: "a", N: n})
					}
				}
			}()
			for range 50 {
				var over atomic.Bool
				var late, calls atomic.Int64
				w, err := e.Handle(ctx, engine.WatchOptions{OnPool: onPool}, func(engine.Event[pod]) {
					calls.Add(1)
					if over.Load() {
						late.Add(1)
					}
				})
				require.NoError(t, err)
				eventually(t, ctx, func() bool { return calls.Load() > 0 })
				w.Stop()
				require.NoError(t, w.Wait(ctx))
				over.Store(true)
				seen := calls.Load()
				rev, err := revisionOf(e.Put(ctx, pod{Name: "b", N: int(seen)}))
				require.NoError(t, err)
				require.NoError(t, e.WaitForRevision(ctx, rev))
				require.Zero(t, late.Load())
				require.Equal(t, seen, calls.Load())
			}
			close(stop)
			<-writing
		})
	}
}

func TestWait_IsBoundedByItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := engine.New(cfg())
		require.NoError(t, err)
		defer func() { require.NoError(t, e.Close()) }()
		begun, release := make(chan struct{}), make(chan struct{})
		w, err := e.Handle(t.Context(), engine.WatchOptions{}, func(engine.Event[pod]) {
			close(begun)
			<-release
		})
		require.NoError(t, err)
		_, err = e.Create(t.Context(), pod{Name: "a"})
		require.NoError(t, err)
		<-begun
		w.Stop()
		<-w.Done()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, w.Wait(ctx), context.DeadlineExceeded, "the handler has not returned")
		close(release)
		require.NoError(t, w.Wait(t.Context()))
	})
}

// Wait returns however the watch ends, and for every kind of consumer.
func TestWait_ForEveryKindOfEnd(t *testing.T) {
	e, ctx := newEngine(t, nil)
	pulled, err := e.Watch(ctx, engine.WatchOptions{})
	require.NoError(t, err)
	panics, err := e.Handle(ctx, engine.WatchOptions{}, func(engine.Event[pod]) { panic("no") })
	require.NoError(t, err)
	failing, err := e.Process(ctx, engine.WatchOptions{}, engine.ErrorPolicy{}, func(context.Context, engine.Event[pod]) error { return nil })
	require.NoError(t, err)
	ended, end := context.WithCancel(ctx)
	cancelled, err := e.Handle(ended, engine.WatchOptions{}, func(engine.Event[pod]) {})
	require.NoError(t, err)
	left, err := e.Handle(ctx, engine.WatchOptions{}, func(engine.Event[pod]) {})
	require.NoError(t, err)
	_, err = e.Create(ctx, pod{Name: "a"})
	require.NoError(t, err)
	require.NoError(t, panics.Wait(ctx))
	require.ErrorIs(t, panics.Err(), engine.ErrHandlerPanic)
	end()
	require.NoError(t, cancelled.Wait(ctx))
	pulled.Stop()
	require.NoError(t, pulled.Wait(ctx))
	failing.Stop()
	require.NoError(t, failing.Wait(ctx))
	require.NoError(t, e.Close())
	require.NoError(t, left.Wait(ctx))
	require.NoError(t, left.Wait(ctx), "once more")
}

// A context that is done does not hide that the watch ended first.
func TestWait_OfAWatchThatHasEndedIsNoError(t *testing.T) {
	e, ctx := newEngine(t, nil)
	w, err := e.Watch(ctx, engine.WatchOptions{})
	require.NoError(t, err)
	w.Stop()
	require.NoError(t, w.Wait(ctx))
	over, cancel := context.WithCancel(ctx)
	cancel()
	for range 100 {
		require.NoError(t, w.Wait(over))
	}
}
