package engine_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/internal/askedwatch"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/faulty"
)

// With a fresh cache the backend is asked for its revision alone.
func TestList_LatestFromAFreshCacheAsksForTheRevisionAlone(t *testing.T) {
	f := newReadFixture(t)
	f.put("a", "web", 1)
	f.lists(listOf(engine.Latest()), "@2: a=1@2", "revision")
	require.Zero(t, f.Stats().Fallbacks)
}

// When the list that it falls back to fails, its error is the answer, after one
// attempt, and it is counted.
func TestList_FallbackThatFailsSaysWhatTheBackendMet(t *testing.T) {
	f := newReadFixture(t)
	f.setHeld(true)
	f.put("a", "web", 1)
	f.storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpList}, Do: faulty.Fail(errDown)})
	began := f.clock.Now()
	_, _, err := f.within(time.Minute).list(listOf(engine.Latest()))
	require.ErrorIs(t, err, errDown)
	require.Equal(t, "revision, list", f.asked())
	require.Equal(t, engine.DefaultFreshnessTimeout, f.clock.Now().Sub(began), "the cache was given its time")
	require.EqualValues(t, 1, f.Stats().Fallbacks)
}

// A list of one key is served by the cache, once it has the backend's newest.
func TestList_OneKeyWaitsForTheCache(t *testing.T) {
	f := newReadFixture(t)
	f.put("a", "web", 1)
	f.put("b", "web", 1)
	f.setHeld(true)
	f.put("a", "web", 2)
	f.clock.AfterFunc(time.Second, func() { f.setHeld(false) })
	began := f.clock.Now()
	f.within(time.Minute).lists(engine.ListOptions{Key: "a"}, "@4: a=2@4", "revision")
	require.Equal(t, time.Second, f.clock.Now().Sub(began))
}

// Storage whose revisions count also what others keep there says that nothing
// happened up to a revision, which is as good as what happened there.
func TestRead_ProgressAloneEndsTheWait(t *testing.T) {
	f := newReadFixture(t, func(c *engine.Config[pod]) { c.Backend = faulty.New(c.Backend, faulty.Options{Sparse: true}) })
	f.put("a", "web", 1)
	for _, wait := range []struct {
		rev  engine.Revision
		read func()
	}{
		{8, func() { f.lists(listOf(engine.NotOlderThan(8)), "@8: a=1@2", "nothing") }},
		{9, func() { f.gets("a", engine.NotOlderThan(9), "a=1@2", "nothing") }},
	} {
		f.clock.AfterFunc(time.Second, func() { f.setProgress(wait.rev) })
		began := f.clock.Now()
		f.within(time.Minute)
		wait.read()
		require.Equal(t, time.Second, f.clock.Now().Sub(began), "revision %d", wait.rev)
	}
}

// The request for progress that a waiting call makes may be lost with the watch. It is repeated.
func TestRead_RequestsProgressUntilThereIsSome(t *testing.T) {
	var lost atomic.Int32
	lost.Store(3)
	f := newReadFixture(t, func(c *engine.Config[pod]) {
		c.Backend = &lasting{
			Backend: c.Backend.(*faulty.Backend),
			traits:  func(t *backend.Traits) { t.Contiguous, t.Shared, t.KeepsHistory = false, true, false },
			watch: func(opts backend.WatchOptions, w backend.Watcher) backend.Watcher {
				return askedwatch.New(withoutEmitted{w}, opts, &lost)
			},
		}
	})
	f.put("a", "web", 1)
	others, err := f.storage.Emit(t.Context(), draftOf(podsByNumber(), pod{Name: "b"}))
	require.NoError(t, err)
	began := f.clock.Now()
	f.within(time.Minute).gets("a", engine.NotOlderThan(others.Revision), "a=1@2", "nothing")
	require.Equal(t, 3*reflector.ProgressPeriod, f.clock.Now().Sub(began))
	require.EqualValues(t, -1, lost.Load(), "nothing is requested when no call waits")
	f.pass(time.Second)
	require.EqualValues(t, -1, lost.Load())
}

// Lists, Get and WaitForRevision give up in time, and say when to try again.
func TestRead_GivesUpAfterTheFreshnessTimeout(t *testing.T) {
	for configured, timeout := range map[time.Duration]time.Duration{0: 3 * time.Second, 700 * time.Millisecond: 700 * time.Millisecond} {
		f := newReadFixture(t, func(c *engine.Config[pod]) { c.FreshnessTimeout = configured })
		f.put("a", "web", 1)
		reads := map[string]func() error{
			"list": func() error { _, _, err := f.list(listOf(engine.NotOlderThan(9))); return err },
			"get": func() error {
				_, err := f.Get(t.Context(), "a", engine.GetOptions{Read: engine.NotOlderThan(9)})
				return err
			},
			"wait": func() error { return f.WaitForRevision(t.Context(), 9) },
		}
		for name, read := range reads {
			began := f.clock.Now()
			f.within(time.Minute)
			err := read()
			require.Equal(t, timeout, f.clock.Now().Sub(began), name)
			var future *engine.FutureError
			require.ErrorAs(t, err, &future, name)
			require.Equal(t, engine.FutureError{Requested: 9, Current: 2}, *future, name)
			require.ErrorContains(t, err, "retry", name)
			require.Equal(t, "nothing", f.asked(), name)
		}
	}
}

// WaitReady waits as long as its context, for storage that was never there and for one that has
// gone away.
func TestWaitReady_WaitsLongerThanReads(t *testing.T) {
	f := newDownFixture(t)
	for range 2 {
		began := f.clock.Now()
		f.clock.AfterFunc(3*time.Hour, func() { f.setDown(false) })
		f.within(24 * time.Hour)
		require.NoError(t, f.WaitReady(t.Context()))
		require.True(t, f.Stats().Ready)
		require.GreaterOrEqual(t, f.clock.Now().Sub(began), 3*time.Hour)
		require.NoError(t, f.WaitReady(t.Context()))
		f.setDown(true)
		f.storage.BreakWatches(errDown)
		f.executor.Run()
		require.False(t, f.Stats().Ready)
	}
}

// If it ends without, it says for what it has waited.
func TestWaitReady_SaysWhyTheCacheIsNotReady(t *testing.T) {
	f := newDownFixture(t)
	given := errors.New("the time is up")
	ctx, cancel := context.WithCancelCause(t.Context())
	f.clock.AfterFunc(time.Minute, func() { cancel(given) })
	f.within(time.Hour)
	err := f.WaitReady(ctx)
	require.ErrorIs(t, err, given)
	require.ErrorIs(t, err, engine.ErrNotReady)
	require.ErrorIs(t, err, errDown)
	f.storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpList, faulty.OpWatch}, Do: faulty.Fail(store.ErrClosed)})
	f.setDown(false)
	f.within(time.Hour)
	err = f.WaitReady(t.Context())
	notReady, _ := errors.AsType[*engine.NotReadyError](err)
	require.True(t, notReady.Final)
	require.ErrorIs(t, err, store.ErrClosed)
}

func TestWaitReady_ReturnsAtOnceWithoutACache(t *testing.T) {
	f := newReadFixture(t, func(c *engine.Config[pod]) { c.NoCache = true })
	f.setDown(true)
	require.NoError(t, f.WaitReady(t.Context()))
	require.Equal(t, "nothing", f.asked())
}

// A backend that is closed, or does not support what the cache needs, never comes back: what waits
// for the cache does not wait for its time.
func TestRead_GivesUpAtOnceIfTheBackendHasEndedForGood(t *testing.T) {
	f := newReadFixture(t, func(c *engine.Config[pod]) { c.FreshnessTimeout = time.Hour })
	f.put("a", "web", 1)
	f.clock.AfterFunc(time.Second, func() {
		f.storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpList, faulty.OpWatch}, Do: faulty.Fail(store.ErrClosed)})
		f.storage.BreakWatches(errDown)
	})
	took := func(call func() error) time.Duration {
		began := f.clock.Now()
		f.within(24 * time.Hour)
		err := call()
		require.ErrorIs(t, err, engine.ErrNotReady)
		require.ErrorIs(t, err, store.ErrClosed)
		require.ErrorContains(t, err, "ended for good")
		notReady, _ := errors.AsType[*engine.NotReadyError](err)
		require.True(t, notReady.Final)
		return f.clock.Now().Sub(began)
	}
	wait := func() error { return f.WaitForRevision(t.Context(), 9) }
	require.False(t, f.Stats().Ended)
	require.Less(t, took(wait), time.Minute, "it waited already")
	require.True(t, f.Stats().Ended)
	require.False(t, f.Stats().Ready)
	for name, call := range map[string]func() error{
		"wait": wait,
		"get": func() error {
			_, err := f.Get(t.Context(), "a", engine.GetOptions{Read: engine.NotOlderThan(9)})
			return err
		},
		"watch": func() error {
			_, err := f.Watch(t.Context(), engine.WatchOptions{})
			return err
		},
		"follow": func() (err error) {
			for _, err = range engine.Follow(t.Context(), f.Engine, engine.WatchOptions{From: 2}) {
				require.Error(t, err)
			}
			return err
		},
	} {
		require.Zero(t, took(call), name)
	}
	f.asked()
	f.lists(listOf(engine.Cached()), "@2: a=1@2", "nothing")
	_, err := f.Put(t.Context(), pod{Name: "b"}) // which no watch can deliver
	require.NoError(t, err)
	require.Zero(t, took(func() error { return f.Drain(t.Context()) }))
}

// Reads that had to wait are counted, whatever became of the wait, and those
// that had not are not.
func TestStats_WaitsOfReads(t *testing.T) {
	f := newReadFixture(t)
	rev := f.put("a", "web", 1)
	f.within(time.Minute)
	for _, read := range []engine.Read{engine.Cached(), engine.NotOlderThan(rev), engine.Latest(), engine.Exactly(rev)} {
		_, _, err := f.list(listOf(read))
		require.NoError(t, err)
		_, err = f.Get(t.Context(), "a", engine.GetOptions{Read: read})
		require.NoError(t, err)
	}
	require.NoError(t, f.WaitForRevision(t.Context(), rev))
	require.Zero(t, f.Stats().Waits)

	require.ErrorIs(t, f.WaitForRevision(t.Context(), 9), engine.ErrFuture)
	require.EqualValues(t, 1, f.Stats().Waits, "in vain")
	f.setHeld(true)
	f.put("a", "web", 2)
	f.clock.AfterFunc(time.Second, func() { f.setHeld(false) })
	f.lists(listOf(engine.Latest()), "@3: a=2@3", "revision")
	require.EqualValues(t, 2, f.Stats().Waits)
}

// The count tracks what storage holds, by whatever way it changes.
func TestStats_CountOfObjectsTracksWrites(t *testing.T) {
	f := newReadFixture(t)
	counts := func(want int, after string) {
		t.Helper()
		f.settle()
		require.Equal(t, want, f.Stats().Objects, after)
	}
	counts(0, "nothing")
	f.put("a", "web", 1)
	f.put("b", "web", 1)
	counts(2, "two were created")
	f.put("a", "web", 2)
	counts(2, "one was updated")
	_, err := f.Emit(t.Context(), pod{Name: "c"})
	require.NoError(t, err)
	counts(2, "what is emitted is not an object")
	_, err = f.CreateWith(t.Context(), pod{Name: "d"}, engine.CreateOptions{TTL: time.Second})
	require.NoError(t, err)
	counts(3, "one was created for a second")
	f.pass(2 * time.Second)
	counts(2, "its time was up")
	f.remove("b")
	counts(1, "one was deleted")

	f.setDown(true)
	f.settle()
	_, err = f.storage.Put(t.Context(), draftOf(cfg(), pod{Name: "e"}), nil, backend.PutOptions{})
	require.NoError(t, err)
	require.NoError(t, f.storage.Compact(t.Context(), 9))
	f.setDown(false)
	f.pass(10 * time.Second)
	counts(2, "one was found by a list")
	require.EqualValues(t, 1, f.Stats().Relists)
}

// Storage may go back when the cache has reached the revision that a call waits for, before the call reads.
func TestRead_OfARevisionThatIsLostMeanwhileIsNotOfAnOlderOne(t *testing.T) {
	read := engine.NotOlderThan(3)
	for name, call := range map[string]func(*readFixture) error{
		"get": func(f *readFixture) error {
			return errorOf(f.Get(t.Context(), "a", engine.GetOptions{Read: read}))
		},
		"list": func(f *readFixture) error { return errorOf(f.List(t.Context(), listOf(read))) },
		"list by a selector": func(f *readFixture) error {
			return errorOf(f.List(t.Context(), engine.ListOptions{Labels: "app=web", Read: read}))
		},
		"watch": func(f *readFixture) error {
			return errorOf(f.Watch(t.Context(), engine.WatchOptions{From: 3, InitialState: true}))
		},
	} {
		f := newReadFixture(t)
		f.put("a", "web", 1)
		f.clock.AfterFunc(time.Second, func() {
			f.put("a", "web", 2)
			f.goBack()
			f.storage.BreakWatches(nil)
			f.pass(10 * time.Second)
		})
		var future *engine.FutureError
		require.ErrorAs(t, call(f.within(time.Minute)), &future, name)
		require.Equal(t, engine.FutureError{Requested: 3, Current: 1}, *future, name)
	}
}
