package watcher_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/clock/clocktest"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/window"
)

func TestWatch_LagCountsFromWhatWasCommitted(t *testing.T) {
	w := wide(t, "a=1")
	committed := store.Revision(0)
	w.feed.Committed = func() store.Revision { return committed }
	watch := w.watch(watcher.Options{}, w.now())
	committed = 3
	require.Equal(t, uint64(3), watch.Lag(), "three writes are on their way")
	w.write("create x a=1")
	w.write("create y a=2")
	w.write("create z a=1")
	w.round()
	_, err := watch.Next(t.Context())
	require.NoError(t, err)
	require.Zero(t, watch.Lag())
	watch.Stop()
	committed = 9
	require.Zero(t, watch.Lag())
}

// The revision at which a watch starts may have been committed before the dispatcher sees it.
func TestWatch_LagCountsFromAStartThatWasCommitted(t *testing.T) {
	w := wide(t, "a=1")
	committed := store.Revision(20)
	w.feed.Committed = func() store.Revision { return committed }
	watch := w.watch(watcher.Options{}, watcher.Start{Pending: 20})
	require.Zero(t, watch.Lag())
	committed = 23
	require.EqualValues(t, 3, watch.Lag())
	require.EqualValues(t, 3, watch.Info(time.Time{}).Lag)
	watch.Stop()
	require.Zero(t, watch.Lag())
	require.Zero(t, watch.Info(time.Time{}).Lag)
}

// What the dispatcher has yet to take is as old as when it was committed, if it is for the watch.
func TestWatch_BehindCountsFromWhatWasCommitted(t *testing.T) {
	w := wide(t, "a=1")
	w.write("create x a=2")
	w.round()
	w.feed.Newest = func() *window.Snapshot { return w.written }
	w.feed.Now = func() time.Time { return at(10) }
	watch := w.watch(watcher.Options{}, w.now())
	require.Zero(t, watch.Behind())
	w.write("create y a=2")
	require.Zero(t, watch.Behind())
	w.write("create z a=1")
	require.Equal(t, 7*time.Second, watch.Behind())
}

// A clock that is set back, and has no monotonic readings, makes no watch younger than new.
func TestInfo_AgeIsNotNegative(t *testing.T) {
	virtual := clock.NewVirtual(time.Date(2024, time.April, 17, 12, 0, 0, 0, time.UTC))
	h, feed := newCounterLog(4), &watcher.Feed{Registry: new(watcher.Registry), Now: virtual.Now}
	start := h.write(1)
	feed.Publish(start)
	w := follow(feed, start, watcher.Park)
	virtual.Advance(time.Minute)
	require.Equal(t, time.Minute, w.Info(virtual.Now()).Age)
	virtual.Jump(-24 * time.Hour)
	require.Zero(t, w.Info(virtual.Now()).Age)
	virtual.Jump(24 * time.Hour)
	require.Equal(t, time.Minute, w.Info(virtual.Now()).Age)
}

func TestInfo_AgeDoesNotChangeWhenTheMachinesClockIsSet(t *testing.T) {
	now := time.Now()
	h, feed := newCounterLog(4), &watcher.Feed{Registry: new(watcher.Registry), Now: func() time.Time { return now }}
	start := h.write(1)
	feed.Publish(start)
	first := follow(feed, start, watcher.Park)
	now = now.Add(time.Minute)
	require.Equal(t, time.Minute, first.Info(now).Age)

	now = clocktest.SetWall(now, 24*time.Hour)
	second := follow(feed, start, watcher.Park)
	now = now.Add(time.Second)
	require.Equal(t, []time.Duration{time.Minute + time.Second, time.Second}, []time.Duration{first.Info(now).Age, second.Info(now).Age})

	now = clocktest.SetWall(now, -48*time.Hour)
	require.Equal(t, []time.Duration{time.Minute + time.Second, time.Second}, []time.Duration{first.Info(now).Age, second.Info(now).Age})
}
