package engine_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
)

// Rows 48 and 80: a handler that blocks holds up nobody, not even with a single
// worker in the pool, and misses nothing once it goes on.
func TestRow080_ABlockedHandlerDelaysNobody(t *testing.T) {
	host, err := engine.NewHost(engine.HostConfig{Workers: 1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, host.Close()) })
	e, ctx := newEngine(t, func(c *engine.Config[pod]) { c.Host = host })

	release, done := make(chan struct{}), make(chan int, 8)
	for range cap(done) {
		seen := 0
		_, err := e.Handle(ctx, engine.WatchOptions{}, func(ev engine.Event[pod]) {
			<-release
			if seen++; ev.Revision == 51 {
				done <- seen
			}
		})
		require.NoError(t, err)
	}
	w, err := e.Watch(ctx, engine.WatchOptions{})
	require.NoError(t, err)
	quick := make(chan struct{})
	_, err = e.Handle(ctx, engine.WatchOptions{OnPool: true}, func(ev engine.Event[pod]) {
		if ev.Revision == 51 {
			close(quick)
		}
	})
	require.NoError(t, err)
	for n := range 50 {
		_, err := e.Put(ctx, pod{Name: "a", N: n + 1})
		require.NoError(t, err)
	}
	require.Len(t, until(t, ctx, w, 51), 50)
	<-quick
	require.Empty(t, done)
	close(release)
	for range cap(done) {
		require.Equal(t, 50, <-done)
	}
}

// A handler that panics, and one that ends its goroutine, end their own watches,
// with what happened and at which event; the event can be had again.
func TestHandlerThatPanicsOrExits(t *testing.T) {
	cause := errors.New("broken")
	for name, fail := range map[string]func(){"panic": func() { panic(cause) }, "exit": runtime.Goexit} {
		for _, onPool := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/pool=%t", name, onPool), func(t *testing.T) {
				e, ctx := newEngine(t, nil)
				w, err := e.Handle(ctx, engine.WatchOptions{OnPool: onPool}, func(ev engine.Event[pod]) {
					if ev.Key() == "bad" {
						fail()
					}
				})
				require.NoError(t, err)
				for _, name := range []string{"a", "bad", "c"} {
					_, err := e.Create(ctx, pod{Name: name})
					require.NoError(t, err)
				}
				<-w.Done()
				var panicked *engine.PanicError
				require.ErrorAs(t, w.Err(), &panicked)
				require.ErrorIs(t, w.Err(), engine.ErrHandlerPanic)
				require.Equal(t, "bad", panicked.Key)
				require.Equal(t, engine.Revision(3), panicked.Revision)
				require.Equal(t, engine.Revision(2), w.Revision())
				again, err := e.Watch(ctx, engine.WatchOptions{From: w.Revision()})
				require.NoError(t, err)
				require.Equal(t, []string{"ADDED bad@3", "ADDED c@4"}, until(t, ctx, again, 4))
			})
		}
	}
}

// A watch is not told of what is not for it, but may be resumed from behind that.
func TestRevisionMovesOnPastWhatIsNotForTheWatch(t *testing.T) {
	r := newRig(t, nil)
	stood := make([]engine.Revision, 0, 1)
	var handled *engine.Watch[thing]
	handled, err := r.engine.Handle(t.Context(), engine.WatchOptions{Labels: "app=db"}, func(engine.Event[thing]) {
		_, err := r.engine.Put(t.Context(), thing{Key: "meanwhile", App: "web"})
		require.NoError(t, err)
		stood = append(stood, handled.Revision())
	})
	require.NoError(t, err)
	pulled := r.watch(engine.WatchOptions{Labels: "app=db"})
	r.requireReads(pulled)
	rev := r.put("a")
	require.Equal(t, []engine.Revision{rev, rev}, []engine.Revision{handled.Revision(), pulled.Revision()})

	db, err := r.engine.Create(t.Context(), thing{Key: "db", App: "db"})
	require.NoError(t, err)
	r.executor.Run()
	require.Equal(t, []engine.Revision{rev}, stood, "the handler has not returned from what follows")
	require.Equal(t, rev, pulled.Revision(), "there is something for it")
	require.Equal(t, db+1, handled.Revision())
	r.requireReads(pulled, "ADDED db@3")
	require.Equal(t, db+1, pulled.Revision())
}

// Row 116: a handler may stop its own watch. It is not called again, and who
// resumes from there gets the very next event.
func TestRow116_StopInsideTheHandler(t *testing.T) {
	e, ctx := newEngine(t, nil)
	for n := range 20 {
		_, err := e.Put(ctx, pod{Name: "a", N: n + 1})
		require.NoError(t, err)
	}
	require.NoError(t, e.WaitFor(ctx, 21))
	calls, returned := 0, make(chan struct{})
	started := make(chan *engine.Watch[pod], 1)
	w, err := e.Handle(ctx, engine.WatchOptions{From: 1}, func(ev engine.Event[pod]) {
		if calls++; calls == 7 {
			w := <-started
			w.Stop()
			close(returned)
		}
	})
	require.NoError(t, err)
	started <- w
	<-returned
	require.NoError(t, e.Close()) // waits for the handler's turn
	require.Equal(t, 7, calls)
	require.ErrorIs(t, w.Err(), engine.ErrStopped)
	require.Equal(t, engine.Revision(8), w.Revision())
}

// Row 47: a watch whose context ends says so, with the context's cause.
func TestRow047_ContextCancelled(t *testing.T) {
	e, ctx := newEngine(t, nil)
	cause := errors.New("the client left")
	of, cancel := context.WithCancelCause(ctx)
	w, err := e.Watch(of, engine.WatchOptions{})
	require.NoError(t, err)
	cancel(cause)
	_, err = w.Next(ctx)
	require.ErrorIs(t, err, engine.ErrStopped)
	require.ErrorIs(t, err, cause)
	_, err = e.Watch(of, engine.WatchOptions{})
	require.ErrorIs(t, err, cause)
}

// A consumer that gives up waiting leaves the watch as it is.
func TestNextThatGivesUpLosesNothing(t *testing.T) {
	e, ctx := newEngine(t, nil)
	w, err := e.Watch(ctx, engine.WatchOptions{})
	require.NoError(t, err)
	gone, cancel := context.WithCancel(ctx)
	cancel()
	_, err = w.Next(gone)
	require.ErrorIs(t, err, context.Canceled)
	rev, err := e.Create(ctx, pod{Name: "a"})
	require.NoError(t, err)
	require.Equal(t, []string{"ADDED a@2"}, until(t, ctx, w, rev))
}

// Rows 48 and 143: a watch that once waited, and whose consumer has not come back
// since, is seen to lag like any other.
func TestRow143_WhoHasStoppedWaitingIsSeenToLag(t *testing.T) {
	e, ctx := newEngine(t, nil)
	w, err := e.Watch(ctx, engine.WatchOptions{Buffer: 5})
	require.NoError(t, err)
	gone, cancel := context.WithCancel(ctx)
	cancel()
	_, err = w.Next(gone)
	require.ErrorIs(t, err, context.Canceled)
	reader, err := e.Watch(ctx, engine.WatchOptions{})
	require.NoError(t, err)
	for n := range 20 {
		rev, err := e.Put(ctx, pod{Name: "a", N: n + 1})
		require.NoError(t, err)
		until(t, ctx, reader, rev)
	}
	require.True(t, w.Stalled())
	require.Equal(t, uint64(20), w.Lag())
	require.Len(t, until(t, ctx, w, 21), 20)
}
