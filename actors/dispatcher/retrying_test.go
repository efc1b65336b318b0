package dispatcher_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors/dispatcher"
	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
)

// admitFailing registers a watch whose handler always fails. It returns the watch and the number of
// the handler's calls.
func (f *fixture) admitFailing(onRetry func(*watcher.Watch, *watcher.HandlerError, time.Duration)) (*watcher.Watch, *int) {
	calls := new(int)
	w := watcher.NewRetrying(&f.feed, watcher.Options{OnPool: true}, watcher.RetryingHandler{
		Handle: func(context.Context, store.Event) error {
			*calls++
			return errors.New("not now")
		},
		Policy: watcher.ErrorPolicy{Backoff: time.Second}, Context: f.Context(), Clock: f.clock, OnRetry: onRetry,
	})
	snap := f.published.Load()
	f.admitThis(w, dispatcher.Register{Start: watcher.Start{Next: snap.Window.Next(), After: 1}, Snapshot: snap})
	return w, calls
}

// A signal may come late, after the handler has failed with the event that it was for.
func TestRetrying_SignalDoesNotShortenAPause(t *testing.T) {
	f := newFixture(t)
	w, calls := f.admitFailing(nil)
	f.write(2)
	require.Equal(t, 1, *calls)
	w.Member().Signal()
	f.executor.Run()
	require.Equal(t, 1, *calls)
	f.pass(time.Second)
	require.Equal(t, 2, *calls)
	w.Stop()
	f.executor.Run()
}

// OnRetry may stop the watch, so that no pause follows.
func TestRetrying_WatchThatIsStoppedBeforeAPauseLeavesNoTimer(t *testing.T) {
	f := newFixture(t)
	w, calls := f.admitFailing(func(w *watcher.Watch, _ *watcher.HandlerError, _ time.Duration) { w.Stop() })
	f.write(2)
	require.Equal(t, 1, *calls)
	require.ErrorIs(t, w.Err(), watcher.ErrStopped)
	require.Zero(t, f.clock.Pending())
	require.EqualValues(t, 1, w.Revision(), "the event is not handled")
}
