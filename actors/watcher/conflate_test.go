package watcher_test

import (
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

func TestWatch_ConflationTellsOfWhatLeavesNoDifference(t *testing.T) {
	w, watch := lagging(t, "", watcher.Options{Buffer: 2, Policy: watcher.Conflate})
	w.rounds(1, "create y")
	next := func() (got []string) {
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
	require.Equal(t, []string{"ADDED y@1"}, next())
	for range 100 {
		w.rounds(1, "create x")
		w.rounds(1, "delete x")
	}
	require.Equal(t, []string{"ADDED x@2", "DELETED x@3"}, next(), "its buffer has two")
	w.rounds(1, "update y a=1")
	w.rounds(1, "update y a=2")
	require.Equal(t, []string{"MODIFIED y@202 after-gap", "MODIFIED y@203"}, next())
}
