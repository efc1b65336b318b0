package engine_test

import (
	"context"
	"errors"
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
	require.Error(t, f.engine.WaitFor(ctx, 1000))
	require.Zero(t, f.engine.Stats().Watches)
}
