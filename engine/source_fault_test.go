package engine_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// requireBroken: the watch has ended with the panic of its Notify.
func requireBroken(t *testing.T, w backend.Watcher) {
	t.Helper()
	_, err := w.Next(1)
	require.ErrorIs(t, err, backend.ErrPanic)
	require.ErrorContains(t, err, "WatchOptions.Notify")
}

func TestPanicInNotifyEndsThatWatchAlone(t *testing.T) {
	var told []error
	r := newRig(t, func(_ *engine.HostConfig, cfg *engine.Config[thing]) {
		cfg.OnError = func(err error) { told = append(told, err) }
	})
	bad, good := r.follow("a"), r.follow("a")
	bad.then = func() { panic("no") }
	r.put("a")
	require.Empty(t, r.failures, "the cache has nothing to do with it")
	require.Equal(t, []string{"ADDED a@2"}, next(t, good))
	requireBroken(t, bad)
	require.Len(t, told, 1)
	require.ErrorIs(t, told[0], backend.ErrPanic)
	r.put("a")
	require.Equal(t, []int{1, 2}, []int{bad.told, good.told})
	requireBroken(t, bad)
}

func TestPanicInNotifyOfProgress(t *testing.T) {
	r := newRig(t, nil)
	all := followKeys(r, 3)
	for _, f := range all {
		f.then = func() { panic("no") }
	}
	r.put("elsewhere")
	r.clock.Advance(100 * time.Millisecond)
	require.Equal(t, 3, tellsOf(all), "each is told, whoever panicked before it")
	for _, f := range all {
		requireBroken(t, f)
	}
}

func TestPanicInNotifyOfTheEnd(t *testing.T) {
	r := newRig(t, nil)
	all := followKeys(r, 3)
	for _, f := range all {
		f.then = func() { panic("no") }
	}
	require.NoError(t, r.engine.Close())
	require.Equal(t, 3, tellsOf(all))
	require.Empty(t, r.failures)
}

// It fails the cache, whose turn that was, but nobody else misses anything.
func TestNotifyThatEndsItsGoroutine(t *testing.T) {
	e, ctx := newEngine(t, func(c *engine.Config[pod]) {
		c.Backoff = reflector.Backoff{Initial: time.Microsecond, Max: time.Microsecond}
	})
	follow := func(notify func()) backend.Watcher {
		w, err := e.Source().Watch(ctx, backend.WatchOptions{Prefix: "a", Notify: notify})
		require.NoError(t, err)
		t.Cleanup(w.Close)
		return w
	}
	read := func(w backend.Watcher) []store.Event {
		batch, err := w.Next(10)
		require.NoError(t, err)
		return batch.Events
	}
	more := make(chan struct{}, 1)
	bad := follow(runtime.Goexit)
	good := follow(func() {
		select {
		case more <- struct{}{}:
		default: // it has been told already
		}
	})
	for n := range 3 {
		require.Empty(t, read(bad)) // from here on it wants to be told
		events := read(good)
		require.Empty(t, events)
		rev, err := e.Put(ctx, pod{Name: "a", N: n})
		require.NoError(t, err)
		for ; len(events) == 0; events = read(good) {
			select {
			case <-more:
			case <-ctx.Done():
				require.Fail(t, "it was not told")
			}
		}
		require.Equal(t, rev, events[0].Revision)
		require.Equal(t, events, read(bad), "it can go on if it wants to")
	}
}
