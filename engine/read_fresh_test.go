package engine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/faulty"
)

// With a fresh cache the backend is asked for its revision alone.
func TestList_LatestFromAFreshCacheAsksForTheRevisionAlone(t *testing.T) {
	r := newReadFixture(t)
	r.put("a", "web", 1)
	r.lists(listOf(engine.Latest()), "@2: a=1@2", "revision")
	require.Zero(t, r.Stats().Fallbacks)
}

// When the list that it falls back to fails, its error is the answer, after one
// attempt, and it is counted.
func TestList_FallbackThatFailsSaysWhatTheBackendMet(t *testing.T) {
	r := newReadFixture(t)
	r.setHeld(true)
	r.put("a", "web", 1)
	r.storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpList}, Do: faulty.Fail(errDown)})
	began := r.clock.Now()
	_, _, err := r.within(time.Minute).list(listOf(engine.Latest()))
	require.ErrorIs(t, err, errDown)
	require.Equal(t, "revision, list", r.asked())
	require.Equal(t, engine.DefaultFreshnessTimeout, r.clock.Now().Sub(began), "the cache was given its time")
	require.EqualValues(t, 1, r.Stats().Fallbacks)
}

// A list of one key is served by the cache, once it has the backend's newest.
func TestList_OneKeyWaitsForTheCache(t *testing.T) {
	r := newReadFixture(t)
	r.put("a", "web", 1)
	r.put("b", "web", 1)
	r.setHeld(true)
	r.put("a", "web", 2)
	r.clock.AfterFunc(time.Second, func() { r.setHeld(false) })
	began := r.clock.Now()
	r.within(time.Minute).lists(engine.ListOptions{Key: "a"}, "@4: a=2@4", "revision")
	require.Equal(t, time.Second, r.clock.Now().Sub(began))
}

// Storage whose revisions count also what others keep there says that nothing
// happened up to a revision, which is as good as what happened there.
func TestRead_ProgressAloneEndsTheWait(t *testing.T) {
	r := newReadFixture(t, func(c *engine.Config[pod]) { c.Backend = faulty.New(c.Backend, faulty.Options{Sparse: true}) })
	r.put("a", "web", 1)
	for _, wait := range []struct {
		rev  engine.Revision
		read func()
	}{
		{8, func() { r.lists(listOf(engine.NotOlderThan(8)), "@8: a=1@2", "nothing") }},
		{9, func() { r.gets("a", engine.NotOlderThan(9), "a=1@2", "nothing") }},
	} {
		r.clock.AfterFunc(time.Second, func() { r.setProgress(wait.rev) })
		began := r.clock.Now()
		r.within(time.Minute)
		wait.read()
		require.Equal(t, time.Second, r.clock.Now().Sub(began), "revision %d", wait.rev)
	}
}

// Lists, Get and WaitFor give up in time, and say when to try again.
func TestRead_GivesUpAfterTheFreshnessTimeout(t *testing.T) {
	for configured, timeout := range map[time.Duration]time.Duration{0: 3 * time.Second, 700 * time.Millisecond: 700 * time.Millisecond} {
		r := newReadFixture(t, func(c *engine.Config[pod]) { c.FreshnessTimeout = configured })
		r.put("a", "web", 1)
		reads := map[string]func() error{
			"list": func() error { _, _, err := r.list(listOf(engine.NotOlderThan(9))); return err },
			"get": func() error {
				_, err := r.Get(t.Context(), "a", engine.GetOptions{Read: engine.NotOlderThan(9)})
				return err
			},
			"wait": func() error { return r.WaitFor(t.Context(), 9) },
		}
		for name, read := range reads {
			began := r.clock.Now()
			r.within(time.Minute)
			err := read()
			require.Equal(t, timeout, r.clock.Now().Sub(began), name)
			var future *engine.FutureError
			require.ErrorAs(t, err, &future, name)
			require.Equal(t, engine.FutureError{Requested: 9, Current: 2}, *future, name)
			require.ErrorContains(t, err, "retry", name)
			require.Equal(t, "nothing", r.asked(), name)
		}
	}
}

// Reads that had to wait are counted, whatever became of the wait, and those
// that had not are not.
func TestStats_WaitsOfReads(t *testing.T) {
	r := newReadFixture(t)
	rev := r.put("a", "web", 1)
	r.within(time.Minute)
	for _, read := range []engine.Read{engine.Cached(), engine.NotOlderThan(rev), engine.Latest(), engine.Exactly(rev)} {
		_, _, err := r.list(listOf(read))
		require.NoError(t, err)
		_, err = r.Get(t.Context(), "a", engine.GetOptions{Read: read})
		require.NoError(t, err)
	}
	require.NoError(t, r.WaitFor(t.Context(), rev))
	require.Zero(t, r.Stats().Waits)

	require.ErrorIs(t, r.WaitFor(t.Context(), 9), engine.ErrFuture)
	require.EqualValues(t, 1, r.Stats().Waits, "in vain")
	r.setHeld(true)
	r.put("a", "web", 2)
	r.clock.AfterFunc(time.Second, func() { r.setHeld(false) })
	r.lists(listOf(engine.Latest()), "@3: a=2@3", "revision")
	require.EqualValues(t, 2, r.Stats().Waits)
}

// The count tracks what storage holds, by whatever way it changes.
func TestStats_CountOfObjectsTracksWrites(t *testing.T) {
	r := newReadFixture(t)
	counts := func(want int, after string) {
		t.Helper()
		r.settle()
		require.Equal(t, want, r.Stats().Objects, after)
	}
	counts(0, "nothing")
	r.put("a", "web", 1)
	r.put("b", "web", 1)
	counts(2, "two were created")
	r.put("a", "web", 2)
	counts(2, "one was updated")
	_, err := r.Emit(t.Context(), pod{Name: "c"})
	require.NoError(t, err)
	counts(2, "what is emitted is no object")
	_, err = r.CreateWithTTL(t.Context(), pod{Name: "d"}, time.Second)
	require.NoError(t, err)
	counts(3, "one was created for a second")
	r.pass(2 * time.Second)
	counts(2, "its time was up")
	r.remove("b")
	counts(1, "one was deleted")

	r.setDown(true)
	r.settle()
	_, err = r.storage.Put(t.Context(), draftOf(cfg(), pod{Name: "e"}), nil, backend.PutOptions{})
	require.NoError(t, err)
	require.NoError(t, r.storage.Compact(t.Context(), 9))
	r.setDown(false)
	r.pass(10 * time.Second)
	counts(2, "one was found by a list")
	require.EqualValues(t, 1, r.Stats().Relists)
}
