package watcher_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/window"
	"github.com/watchmill/watchmill/usercode"
)

// A loop that stops its watch sees no more events, even of the batch that it is in.
func TestWatch_ThatIsStoppedInALoopDeliversNoMore(t *testing.T) {
	w := wide(t, "")
	watch := w.watch(watcher.Options{}, w.now())
	for range 5 {
		w.oneRevision(1)
	}
	w.round()
	var seen []store.Revision
	for ev, err := range watch.Events() {
		if err != nil {
			require.ErrorIs(t, err, watcher.ErrStopped)
			break
		}
		seen = append(seen, ev.Revision)
		watch.Stop()
	}
	require.Equal(t, []store.Revision{1}, seen)
	require.EqualValues(t, 1, watch.Revision())
}

// Neither does the goroutine that passes the events to a channel: a receiver that comes late gets
// at most the event that was offered when the watch ended.
func TestWatch_ThatIsStoppedPassesNoMoreToItsChannel(t *testing.T) {
	w := wide(t, "")
	w.feed.Go = func(f func()) { f() }
	watch := w.watch(watcher.Options{}, w.now())
	for range 5 {
		w.oneRevision(1)
	}
	w.round()
	var seen []store.Revision
	closed := false
	watch.Pump(func(ev store.Event) bool {
		seen = append(seen, ev.Revision)
		watch.Stop()
		return true // the receiver was there too, and the select has taken it
	}, func() { closed = true })
	require.Equal(t, []store.Revision{1}, seen)
	require.True(t, closed)
	require.ErrorIs(t, watch.Err(), watcher.ErrStopped)
}

// What breaks a watch without a cache may come before the dispatcher has registered it.
func TestWatch_PendingEndsForWhatCameBeforeItBegan(t *testing.T) {
	w := newWorld(t, &store.Filter{}, window.Limits{})
	reason := errors.New("storage has lost the watch")
	watch := watcher.New(&w.feed, watcher.Options{})
	watch.Member().EndWhenCaughtUp(reason)
	watch.Member().Begin(w.stream, watcher.Start{Pending: 20})
	require.ErrorIs(t, watch.Err(), reason)
}

func TestNotified_IsNotCalledOnceItIsClosed(t *testing.T) {
	w := wide(t, "")
	watch := watcher.NewNotified(&w.feed, watcher.Options{}, func() { t.Error("it was called") })
	w.join(watch, w.now())
	_, _, err := watch.Take(1)
	require.NoError(t, err)
	watch.Close()
	watch.Member().Signal()
	watch.Close()
	require.ErrorIs(t, watch.Err(), watcher.ErrStopped)
}

func TestNotified_PanicEndsTheWatch(t *testing.T) {
	var reported []error
	w := wide(t, "")
	w.feed.Report = func(err error) { reported = append(reported, err) }
	watch := watcher.NewNotified(&w.feed, watcher.Options{}, func() { panic("no") })
	w.join(watch, w.now())
	watch.Member().Signal()
	watch.Member().Signal()
	_, _, err := watch.Take(1)
	require.ErrorIs(t, err, usercode.ErrPanic)
	require.Equal(t, []error{err}, reported)
}

// Ended is told once for a watch without an actor, however it ends.
func TestWatch_EndIsToldOnce(t *testing.T) {
	w := wide(t, "")
	var told []*watcher.Member
	w.feed.Ended = func(m *watcher.Member) { told = append(told, m) }
	watch := w.watch(watcher.Options{}, w.now())
	done := watch.Done()
	reason := errors.New("enough")
	watch.Member().End(reason)
	watch.Stop()
	<-done
	<-watch.Done()
	require.ErrorIs(t, watch.Err(), reason)
	require.Equal(t, []*watcher.Member{watch.Member()}, told)
	_, err := watch.Next(t.Context())
	require.ErrorIs(t, err, reason)
}

// Storage may end, and the engine be closed, while a watch delivers the rest: what came first
// is why it ends.
func TestWatch_EndsForTheFirstReasonOnceItHasCaughtUp(t *testing.T) {
	w := wide(t, "")
	watch := w.watch(watcher.Options{}, w.now())
	w.rounds(1, "emit x")
	first, second := errors.New("first"), errors.New("second")
	watch.Member().EndWhenCaughtUp(first)
	watch.Member().EndWhenCaughtUp(second)
	_, err := watch.Next(t.Context())
	require.NoError(t, err)
	_, err = watch.Next(t.Context())
	require.ErrorIs(t, err, first)
	require.NotErrorIs(t, err, second)
}

// A consumer that is blocked in Next hears of the end.
func TestWatch_EndReachesAConsumerThatWaits(t *testing.T) {
	w := wide(t, "")
	watch := w.watch(watcher.Options{}, w.now())
	w.feed.Await = func(ctx context.Context, ready <-chan struct{}) error {
		<-ready
		w.feed.Await = func(_ context.Context, ready <-chan struct{}) error {
			watch.Stop()
			<-ready
			return nil
		}
		return nil
	}
	_, err := watch.Next(t.Context())
	require.ErrorIs(t, err, watcher.ErrStopped)
}
