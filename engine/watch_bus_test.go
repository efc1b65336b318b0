package engine_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
)

// The four failures that home-made buses have in common, each as a test.

// Between the replay of what was and the delivery of what happens there must be
// neither a gap nor a repetition (cadis 2566).
func TestWatch_NoGapBetweenReplayAndLive(t *testing.T) {
	e, ctx := newEngine(t, nil)
	var writer sync.WaitGroup
	writer.Go(func() {
		for n := range 300 {
			if _, err := e.Create(ctx, pod{Name: fmt.Sprintf("pod-%03d", n)}); err != nil {
				panic(err)
			}
		}
	})
	for _, opts := range []engine.WatchOptions{{From: 1}, {InitialState: true}, {From: 1, Labels: "app!=x"}, {InitialState: true, Labels: "app!=x"}} {
		for range 10 {
			w, err := e.Watch(ctx, opts)
			require.NoError(t, err)
			seen := map[string]bool{}
			for len(seen) < 300 {
				events, err := w.Next(ctx)
				require.NoError(t, err)
				for _, ev := range events {
					require.False(t, seen[ev.Key()], "%v was seen before", ev)
					seen[ev.Key()] = true
				}
			}
			w.Stop()
		}
	}
	writer.Wait()
}

// A consumer that comes back with its position gets what it missed, not just
// what happens from then on (openeverest 2582).
func TestWatch_ResumePointIsHonoured(t *testing.T) {
	e, ctx := newEngine(t, nil)
	w, err := e.Watch(ctx, engine.WatchOptions{})
	require.NoError(t, err)
	var seen []engine.Revision
	for n := range 100 {
		_, err := e.Put(ctx, pod{Name: "a", N: n + 1})
		require.NoError(t, err)
		if n%3 > 0 {
			continue
		}
		events, err := w.Next(ctx)
		require.NoError(t, err)
		for _, ev := range events {
			seen = append(seen, ev.Revision)
		}
		w.Stop()
		w, err = e.Watch(ctx, engine.WatchOptions{From: w.Revision()})
		require.NoError(t, err)
	}
	for len(seen) < 100 {
		events, err := w.Next(ctx)
		require.NoError(t, err)
		for _, ev := range events {
			seen = append(seen, ev.Revision)
		}
	}
	for i, rev := range seen {
		require.Equal(t, engine.Revision(i+2), rev)
	}
}

// A consumer that does not read is neither left out silently nor waited for:
// not by writers, and not by handlers that write (dingo 2978, 3718).
func TestWatch_NoSilentDropAndNoDeadlock(t *testing.T) {
	e, ctx := newEngine(t, func(c *engine.Config[pod]) { c.Window = engine.Window{MaxEvents: 64, ChunkSize: 8} })
	idle, err := e.Watch(ctx, engine.WatchOptions{Buffer: 4})
	require.NoError(t, err)
	answered := make(chan struct{}, 1)
	_, err = e.Handle(ctx, engine.WatchOptions{Labels: "app=request"}, func(ev engine.Event[pod]) {
		if _, err := e.Put(ctx, pod{Name: "answer", App: "answer", N: ev.Object.Value.N}); err != nil {
			panic(err)
		}
		answered <- struct{}{}
	})
	require.NoError(t, err)
	for n := range 200 {
		_, err := e.Put(ctx, pod{Name: "request", App: "request", N: n + 1})
		require.NoError(t, err)
		select {
		case <-answered:
		case <-ctx.Done():
			require.FailNow(t, "no answer", "to request %d", n+1)
		}
	}
	var last engine.Revision
	for ev, err := range idle.Events() {
		if err != nil {
			require.ErrorIs(t, err, engine.ErrExpired)
			break
		}
		require.Equal(t, max(last, 1)+1, ev.Revision)
		last = ev.Revision
	}
	require.Equal(t, last, idle.Revision(), "it knows where it stands")
}

// A watch whose caller goes away before it is ready leaves nothing behind
// (grafana 130440).
func TestWatch_CancelledBeforeReadyLeavesNothing(t *testing.T) {
	host, err := engine.NewHost(engine.HostConfig{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, host.Close()) })
	e, ctx := newEngine(t, func(c *engine.Config[pod]) { c.Host = host })
	require.NoError(t, e.WaitForRevision(ctx, 1))
	before := host.Actors()
	for n := range 200 {
		of, cancel := context.WithCancel(ctx)
		var left sync.WaitGroup
		left.Go(cancel)
		w, err := e.Watch(of, engine.WatchOptions{InitialState: true, Bookmarks: n%2 == 0, Labels: "app=web"})
		if err != nil {
			require.ErrorIs(t, err, context.Canceled)
		} else {
			_, err = w.Next(ctx) // the bookmark, or why it ended
			if n%2 == 1 || err != nil {
				require.ErrorIs(t, err, engine.ErrStopped)
			}
		}
		left.Wait()
	}
	eventually(t, ctx, func() bool { return e.Stats().Watches == 0 && host.Actors() == before })
}
