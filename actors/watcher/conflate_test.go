package watcher_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors/watcher"
)

func TestWatch_ConflationTellsOfEmittedValuesThatItLoses(t *testing.T) {
	w, watch := lagging(t, "", watcher.Options{Buffer: 1, Policy: watcher.Conflate})
	w.rounds(1000, "emit x")
	events, err := watch.Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, "EMITTED x@1", events[0].String(), "its buffer has one")
	_, err = watch.Next(t.Context())
	require.ErrorIs(t, err, errIdle)
	require.Equal(t, uint64(999), watch.Lost())
	w.rounds(2, "emit x")
	events, err = watch.Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, "EMITTED x@1001 after-gap", events[0].String())
	events, err = watch.Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, "EMITTED x@1002", events[0].String(), "once is enough")
	require.Equal(t, uint64(999), watch.Lost())
}

// readAll returns the events that are there for the watch.
func readAll(t *testing.T, watch *watcher.Watch) (got []string) {
	t.Helper()
	for {
		events, err := watch.Next(t.Context())
		if err != nil {
			require.ErrorIs(t, err, errIdle)
			return got
		}
		for _, ev := range events {
			got = append(got, ev.String())
		}
	}
}

// Each event of the difference stands for one that has left the window.
func TestWatch_ConflationThatLeavesNothingOutTellsOfNoGap(t *testing.T) {
	w, watch := lagging(t, "", watcher.Options{Buffer: 1, Policy: watcher.Conflate})
	for n := range 10 {
		w.rounds(1, fmt.Sprintf("create k%d", n))
	}
	got := readAll(t, watch)
	require.Len(t, got, 10)
	require.Contains(t, got, "ADDED k9@10 conflated")
	require.Zero(t, watch.Lost())
	w.rounds(1, "emit x")
	require.Equal(t, []string{"EMITTED x@11"}, readAll(t, watch))
}

// A consumer gets a large difference as it gets a large state: in parts, and all of it in order.
func TestWatch_ConflationDeliversALargeDifferenceInParts(t *testing.T) {
	w, watch := lagging(t, "", watcher.Options{Buffer: 1, Policy: watcher.Conflate})
	var created, got []string
	for n := range 600 {
		created = append(created, fmt.Sprintf("k%03d", n))
		w.rounds(1, "create "+created[n])
	}
	var sizes []int
	for len(got) < len(created) {
		events, err := watch.Next(t.Context())
		require.NoError(t, err)
		sizes = append(sizes, len(events))
		for _, ev := range events {
			got = append(got, ev.Key())
		}
	}
	require.Equal(t, created, got)
	require.Equal(t, []int{1, 256, 256, 87}, sizes, "its buffer has one")
}

// leaveNoDifference has the watch, whose buffer must be two, lose objects that come and go.
func leaveNoDifference(t *testing.T, w *world, watch *watcher.Watch) {
	t.Helper()
	w.rounds(1, "create y")
	require.Equal(t, []string{"ADDED y@1"}, readAll(t, watch))
	for range 100 {
		w.rounds(1, "create x")
		w.rounds(1, "delete x")
	}
	require.Equal(t, []string{"ADDED x@2", "DELETED x@3"}, readAll(t, watch), "its buffer has two")
}

func TestWatch_ConflationTellsOfWhatLeavesNoDifference(t *testing.T) {
	w, watch := lagging(t, "", watcher.Options{Buffer: 2, Policy: watcher.Conflate})
	leaveNoDifference(t, w, watch)
	w.rounds(1, "update y a=1")
	w.rounds(1, "update y a=2")
	require.Equal(t, []string{"MODIFIED y@202 after-gap", "MODIFIED y@203"}, readAll(t, watch))
}

// A consumer may save the revision of a bookmark and continue from it with another watch,
// which would not be told of the gap.
func TestWatch_BookmarkTellsOfWhatConflationLeftOut(t *testing.T) {
	w, watch := lagging(t, "", watcher.Options{Buffer: 2, Policy: watcher.Conflate, Bookmarks: true})
	leaveNoDifference(t, w, watch)
	watch.Member().RequestBookmark()
	require.Equal(t, []string{"BOOKMARK@201 after-gap"}, readAll(t, watch))
	w.rounds(1, "update y a=1")
	w.rounds(1, "emit x")
	require.Equal(t, []string{"MODIFIED y@202", "EMITTED x@203 after-gap"}, readAll(t, watch), "emitted values may be lost, too")
}

// Watches share the events of the window, so a gap of one must not show in another.
func TestWatch_ConflationMarksNoEventOfAnotherWatch(t *testing.T) {
	w, watch := lagging(t, "", watcher.Options{Buffer: 1, Policy: watcher.Conflate})
	other := w.watch(watcher.Options{}, w.now())
	w.rounds(10, "emit x")
	require.Equal(t, []string{"EMITTED x@1"}, readAll(t, watch), "its buffer has one")
	w.rounds(1, "emit x")
	require.Equal(t, []string{"EMITTED x@11 after-gap"}, readAll(t, watch))
	got := readAll(t, other)
	require.Equal(t, "EMITTED x@11", got[len(got)-1])
}

// A conflated deletion has a revision before the true one. A watch that resumed from it would see the
// deleted object again.
func TestWatch_RevisionStaysBeforeADifferenceUntilItsEnd(t *testing.T) {
	w, watch := lagging(t, "", watcher.Options{Buffer: 1, Policy: watcher.Conflate})
	w.rounds(1, "create a")
	w.rounds(1, "create b")
	require.Equal(t, []string{"ADDED a@1", "ADDED b@2"}, readAll(t, watch))
	for _, line := range []string{"create c", "update a a=1", "update a a=2", "update b a=1", "delete a"} {
		w.rounds(1, line)
	}
	w.rounds(10, "emit x")
	var seen []string
	for ev, err := range watch.Events() {
		require.NoError(t, err)
		seen = append(seen, ev.String())
		if len(seen) == 2 {
			break
		}
	}
	require.Equal(t, []string{"ADDED c@3", "DELETED a@4 conflated"}, seen, "its buffer has one")
	require.EqualValues(t, 3, watch.Revision())
	require.Equal(t, []string{"MODIFIED b@6 conflated"}, readAll(t, watch))
	require.EqualValues(t, 17, watch.Revision())
}
