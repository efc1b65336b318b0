package engine_test

import (
	"context"
	"iter"
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

// A watch that its timeout has ended is followed by another at once, however short that is.
func TestFollow_DoesNotPauseAfterATimeout(t *testing.T) {
	f := newReadFixture(t)
	all := engine.Follow(t.Context(), f.Engine, engine.WatchOptions{Timeout: 100 * time.Millisecond})
	requireUpdates(t, all, "list@1:")
	next, stop := iter.Pull2(all)
	defer stop()
	written := f.clock.Now().Add(5*time.Second + 50*time.Millisecond)
	f.clock.AfterFunc(written.Sub(f.clock.Now()), func() { f.put("a", "web", 1) })
	f.within(time.Minute)
	up, err, _ := next()
	require.NoError(t, err)
	require.Equal(t, "2: ADDED a@2 since watch deadline reached", textOf(up))
	require.Equal(t, written, f.clock.Now())
}

// Storage whose watches end at once is asked for another at a pace that slows down, and not as
// fast as the machine can.
func TestFollow_PausesBetweenWatchesThatEndAtOnce(t *testing.T) {
	for name, fault := range map[string]faulty.Action{"broken": faulty.Fail(nil), "expired": faulty.Expire()} {
		t.Run(name, func(t *testing.T) {
			f := newReadFixture(t, func(c *engine.Config[pod]) { c.NoCache = true })
			f.put("a", "web", 1)
			bad := f.storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpNext}, Times: 100, Do: fault})
			all := engine.Follow(t.Context(), f.Engine, engine.WatchOptions{})
			_, end := updates(all)
			require.ErrorIs(t, end, engine.ErrIdle)
			require.EqualValues(t, 2, bad.Hits(), "a watch that ends is followed by another at once, and then by a pause")

			f.within(10 * time.Second)
			_, end = updates(all)
			require.ErrorIs(t, end, engine.ErrIdle)
			require.Less(t, bad.Hits(), uint64(25))
			bad.Remove()
			f.within(0)
			f.put("a", "web", 2)
			got, end := updates(all)
			require.ErrorIs(t, end, engine.ErrIdle)
			require.Regexp(t, "^(3: MODIFIED a@3|list@3: a=2) since ", got[len(got)-1])
		})
	}
}

// A watch that has delivered something is followed by another at once, however it ends.
func TestFollow_DoesNotPauseAfterAWatchThatHasDelivered(t *testing.T) {
	f := newReadFixture(t, func(c *engine.Config[pod]) { c.NoCache = true })
	all := engine.Follow(t.Context(), f.Engine, engine.WatchOptions{})
	requireUpdates(t, all, "list@1:")
	next, stop := iter.Pull2(all)
	defer stop()
	for n := range 10 {
		f.put("a", "web", n)
		up, err, _ := next()
		require.NoError(t, err)
		require.EqualValues(t, 2+n, up.Revision)
		require.Equal(t, n > 0, up.Cause != nil)
		require.Equal(t, 1, f.storage.BreakWatches(nil))
	}
}

// History that expires before a watch can start is listed again at a pace that slows down.
func TestResume_PausesBetweenLists(t *testing.T) {
	f := newReadFixture(t, func(c *engine.Config[pod]) { c.NoCache = true })
	bad := f.storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpWatch}, Times: 100, Do: faulty.Expire()})
	lists := 0
	reset := func(*engine.List[pod]) { lists++ }
	_, err := engine.Resume(t.Context(), f.Engine, engine.WatchOptions{}, reset, nil)
	require.ErrorIs(t, err, engine.ErrIdle)
	require.Equal(t, 2, lists)
	lists = 0
	ctx, cancel := context.WithCancelCause(t.Context())
	f.clock.AfterFunc(10*time.Second, func() { cancel(errDown) })
	f.within(time.Minute)
	_, err = engine.Resume(ctx, f.Engine, engine.WatchOptions{}, reset, nil)
	require.ErrorIs(t, err, errDown)
	require.Less(t, lists, 25)
	require.EqualValues(t, 2+lists, bad.Hits())
	bad.Remove()
	w, err := engine.Resume(t.Context(), f.Engine, engine.WatchOptions{}, reset, nil)
	require.NoError(t, err)
	w.Stop()
	f.settle()
}
