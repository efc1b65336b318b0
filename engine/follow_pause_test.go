package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store/backend/faulty"
)

// Storage that opens no watch is asked at a pace that slows down to once a second.
func TestFollow_PausesLongerWhileNoWatchOpens(t *testing.T) {
	f := newReadFixture(t, func(c *engine.Config[pod]) { c.NoCache = true })
	bad := f.storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpWatch}, Do: faulty.Fail(errDown)})
	ctx, cancel := context.WithCancelCause(t.Context())
	f.clock.AfterFunc(10*time.Second, func() { cancel(errOutage) })
	f.within(time.Minute)
	_, end := updates(engine.Follow(ctx, f.Engine, engine.WatchOptions{}))
	require.ErrorIs(t, end, errOutage)
	require.Greater(t, bad.Hits(), uint64(8), "and no slower than that")
	require.Less(t, bad.Hits(), uint64(25))
}

// A watch that breaks after a while is followed by another at once, though nothing happened.
func TestFollow_DoesNotPauseAfterAWatchThatHasLasted(t *testing.T) {
	f := newReadFixture(t, func(c *engine.Config[pod]) { c.NoCache = true })
	began := f.clock.Now()
	var opened []time.Duration
	f.storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpWatch}, Do: faulty.Before(func(context.Context, *faulty.Call) {
		opened = append(opened, f.clock.Now().Sub(began))
	})})
	for n := range 5 {
		f.clock.AfterFunc(time.Duration(1+n)*time.Second, func() { f.storage.BreakWatches(nil) })
	}
	f.within(time.Minute)
	_, end := updates(engine.Follow(t.Context(), f.Engine, engine.WatchOptions{}))
	require.ErrorIs(t, end, engine.ErrIdle)
	require.Equal(t, []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second, 4 * time.Second, 5 * time.Second}, opened)
}

// A consumer that asked for the newest state is not given an older one that its revision allows.
func TestResume_ListsTheNewestStateIfLinearizable(t *testing.T) {
	for _, linearizable := range []bool{false, true} {
		f := newReadFixture(t)
		f.put("a", "web", 1)
		from := f.put("a", "web", 2)
		f.put("a", "web", 3)
		require.NoError(t, f.Compact(t.Context(), from+1))
		f.setHeld(true)
		written, err := f.Put(t.Context(), pod{Name: "a", N: 4})
		require.NoError(t, err)
		f.clock.AfterFunc(time.Second, func() { f.setHeld(false) })
		var lists []engine.Revision
		w, err := engine.Resume(t.Context(), f.within(time.Minute).Engine, engine.WatchOptions{From: from, Linearizable: linearizable},
			func(l *engine.List[pod]) { lists = append(lists, l.Revision) }, nil)
		require.NoError(t, err)
		w.Stop()
		want := map[bool]engine.Revision{false: written.Revision - 1, true: written.Revision}
		require.Equal(t, []engine.Revision{want[linearizable]}, lists)
	}
}
