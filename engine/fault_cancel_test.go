package engine_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
)

var errChangedMind = errors.New("changed my mind")

// The caller's context ends before the first turn of the call, before the
// second, and so on until the call is through before it ends.
func TestFault_ContextEndsAtAnyPointOfWatch(t *testing.T) {
	for name, opts := range map[string]engine.WatchOptions{
		"now":          {},
		"state":        {InitialState: true, From: 4, Bookmarks: true, Labels: "app=web"},
		"latest state": {InitialState: true, Linearizable: true},
		"not there":    {InitialState: true, From: 1000},
	} {
		t.Run(name, func(t *testing.T) {
			through, refused := false, 0
			for fuse := 0; !through && fuse < 1000; fuse++ {
				through = !cancelWatchAfter(t, opts, fuse)
				refused++
			}
			require.True(t, through || name == "not there", "the call never got through")
			require.Greater(t, refused, 1, "the call never waited")
		})
	}
}

// cancelWatchAfter starts a watch whose context ends after some turns, checks
// that nothing is left of it, and reports whether the context ended before the
// call was through.
func cancelWatchAfter(t *testing.T, opts engine.WatchOptions, turns int) (cancelled bool) {
	var executor *interruptible
	f := newFixture(t, func(host *engine.HostConfig, _ *engine.Config[thing]) {
		executor = &interruptible{Seeded: host.Executor.(singleStepping).Seeded}
		host.Executor = executor
	})
	for _, key := range []string{"a", "b", "c"} {
		_, err := f.engine.Put(t.Context(), thing{Key: key, App: "web"}) // the cache has not heard of it yet
		require.NoError(t, err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	executor.fuse, executor.blow = turns, func() { cancel(errChangedMind); cancelled = true }
	w, err := f.engine.Watch(ctx, opts)
	executor.blow = nil
	cancel(errChangedMind)
	switch {
	case err == nil:
		<-w.Done()
		require.ErrorIs(t, w.Err(), engine.ErrStopped)
		require.ErrorIs(t, w.Err(), errChangedMind)
	case errors.Is(err, engine.ErrIdle):
		cancelled = false
	default:
		require.ErrorIs(t, err, errChangedMind)
	}
	f.executor.Run()
	require.Zero(t, f.engine.Stats().Watches, "after %d turns", turns)
	require.Len(t, f.engine.Host().ActorNames(), 4, "the engine's own: root, dispatcher, watchCache, reflector")
	f.requireReads(f.watch(engine.WatchOptions{From: 3}), "ADDED c@4") // other watches are not affected
	return cancelled && err != nil
}

// A context that ends while the consumer waits ends that call, not the watch;
// the context of Watch ends the watch.
func TestFault_ContextEndsWhileTheConsumerWaits(t *testing.T) {
	e, err := engine.New(cfg())
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	watching, stop := context.WithCancelCause(t.Context())
	w, err := e.Watch(watching, engine.WatchOptions{})
	require.NoError(t, err)
	waiting, giveUp := context.WithCancelCause(t.Context())
	giveUp(errChangedMind)
	_, err = w.Next(waiting)
	require.ErrorIs(t, err, errChangedMind)
	require.NoError(t, w.Err(), "the watch goes on")
	stop(errChangedMind)
	_, err = w.Next(t.Context())
	require.ErrorIs(t, err, engine.ErrStopped)
	require.ErrorIs(t, err, errChangedMind)
}

func TestFault_EndedContextStartsNothing(t *testing.T) {
	f := newFixture(t, nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errChangedMind)
	_, err := f.engine.Watch(ctx, engine.WatchOptions{})
	require.ErrorIs(t, err, errChangedMind)
	_, err = f.engine.Create(ctx, thing{Key: "a"})
	require.ErrorIs(t, err, errChangedMind)
	_, err = f.engine.List(ctx, engine.ListOptions{})
	require.ErrorIs(t, err, errChangedMind)
	require.Error(t, f.engine.WaitForRevision(ctx, 1000))
	require.Zero(t, f.engine.Stats().Watches)
}

// The context ends while the engine is busy, and the caller comes to notice that only once its
// handler has had events. A call that fails then would leave it without the revision from which to
// watch again, and without a way to wait for the handler.
func TestFault_ContextEndsWhileTheHandlerBegins(t *testing.T) {
	type begin func(e *engine.Engine[pod], ctx context.Context, handled func()) (*engine.Watch[pod], error)
	for name, begin := range map[string]begin{
		"handle": func(e *engine.Engine[pod], ctx context.Context, handled func()) (*engine.Watch[pod], error) {
			return e.Handle(ctx, engine.WatchOptions{From: 1}, func(engine.Event[pod]) { handled() })
		},
		"process": func(e *engine.Engine[pod], ctx context.Context, handled func()) (*engine.Watch[pod], error) {
			return e.Process(ctx, engine.WatchOptions{From: 1}, engine.ErrorPolicy{}, func(context.Context, engine.Event[pod]) error {
				handled()
				return nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			busy, free := make(chan struct{}), make(chan struct{})
			e, ctx := newEngine(t, func(c *engine.Config[pod]) {
				c.OnEnd = func(end engine.WatchEnd) {
					if end.Name == "first" {
						close(busy)
						<-free
					}
				}
			})
			_, err := e.Put(ctx, pod{Name: "a"})
			require.NoError(t, err)
			first, err := e.Watch(ctx, engine.WatchOptions{Name: "first"})
			require.NoError(t, err)
			first.Stop()
			<-busy

			handled := make(chan struct{})
			of := &noticedLate{Context: ctx, waiting: make(chan struct{}), done: make(chan struct{}), late: func() {
				close(free)
				<-handled
			}}
			go of.endOnceWaitedFor()
			w, err := begin(e, of, func() { close(handled) })
			require.NoError(t, err, "though the handler was called")
			<-w.Done()
			require.ErrorIs(t, w.Err(), engine.ErrStopped)
			require.ErrorIs(t, w.Err(), errChangedMind)
			require.NoError(t, w.Wait(ctx))
			require.Equal(t, engine.Revision(2), w.Revision())
		})
	}
}

// noticedLate is a context that ends once a call waits for it. The caller comes to know only when late
// has returned, as one that gets no processor.
type noticedLate struct {
	context.Context
	waiting, done chan struct{}
	late          func()
	once          sync.Once
}

func (c *noticedLate) endOnceWaitedFor() {
	<-c.waiting
	close(c.done)
}

func (c *noticedLate) Done() <-chan struct{} {
	c.once.Do(func() { close(c.waiting) })
	return c.done
}

func (c *noticedLate) Err() error {
	select {
	case <-c.done:
		c.late()
		return errChangedMind
	default:
		return nil
	}
}
