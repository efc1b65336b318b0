package engine_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/clock/clocktest"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend/faulty"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// What Verify finds it reports, and has mended.
func TestVerify_FindsACacheThatDiffersAndHasItListedAnew(t *testing.T) {
	f := newReadFixture(t)
	f.put("a", "web", 1)
	require.NoError(t, f.Verify(t.Context()))
	w, err := f.Watch(t.Context(), engine.WatchOptions{})
	require.NoError(t, err)

	f.setWrong(true)
	f.put("b", "web", 1)
	f.setWrong(false)

	err = f.Verify(t.Context())
	var differs *engine.InconsistencyError
	require.ErrorAs(t, err, &differs)
	require.Equal(t, "b", differs.Key)
	require.EqualValues(t, 3, differs.Revision)
	f.pass(5 * time.Second)
	require.NoError(t, f.Verify(t.Context()))
	// Nothing has been written since, so no revision is left for the correction
	// to come at: the watch is told that it has to start over.
	require.ErrorIs(t, w.Err(), engine.ErrExpired)
}

// wrongPod has the cache, which has a pod, take another as it is not, and Verify find it. Storage
// lists nothing more, until the test ends that, so that the cache stays as it is.
func (f *readFixture) wrongPod(name string) (rev engine.Revision, noLists *faulty.Fault) {
	f.t.Helper()
	f.put("a", "web", 1)
	f.setWrong(true)
	rev = f.put(name, "web", 1)
	f.setWrong(false)
	noLists = f.storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpList}, Skip: 1, Do: faulty.Fail(errDown)})
	require.ErrorIs(f.t, f.Verify(f.t.Context()), engine.ErrInconsistent)
	f.pass(5 * time.Second)
	f.asked()
	return rev, noLists
}

// What was found to be wrong is not read from the cache either while storage cannot be listed,
// which is then the reason that the cache is not ready.
func TestVerify_ExactReadsAvoidAWrongStateThroughAnOutage(t *testing.T) {
	f := newReadFixture(t)
	rev, noLists := f.wrongPod("b")
	f.gets("b", engine.Exactly(rev), errDown.Error(), "list")
	noLists.Remove()
	f.gets("b", engine.Exactly(rev), "b=1@3", "list")
}

// The states before the list by which the cache was corrected are not read from the cache. Watches
// that ran go on.
func TestVerify_ExactReadsAvoidTheWrongPastOfACorrectedState(t *testing.T) {
	f := newReadFixture(t)
	w, err := f.Watch(t.Context(), engine.WatchOptions{})
	require.NoError(t, err)
	rev, noLists := f.wrongPod("b")
	corrected := f.put("c", "web", 1)
	noLists.Remove()
	f.pass(5 * time.Second)
	require.NoError(t, f.Verify(t.Context()))

	o, err := f.Get(t.Context(), "b", engine.GetOptions{Read: engine.Exactly(rev)})
	require.NoError(t, err)
	require.Equal(t, rev, o.Created)
	f.asked()
	f.lists(listOf(engine.Exactly(corrected)), "@4: a=1@2 b=1@3 c=1@4", "nothing")
	for _, from := range []engine.Revision{rev - 1, rev} {
		_, err = f.Watch(t.Context(), engine.WatchOptions{From: from})
		require.ErrorIs(t, err, engine.ErrExpired)
	}
	_, err = f.Watch(t.Context(), engine.WatchOptions{From: corrected})
	require.NoError(t, err)

	state := map[string]engine.Revision{}
	for ev, err := range w.Events() {
		require.NoError(t, err)
		if ev.Object.Key == "c" {
			break
		}
		if state[ev.Object.Key] = ev.Object.Created; ev.Type == engine.Deleted {
			delete(state, ev.Object.Key)
		}
	}
	require.Equal(t, map[string]engine.Revision{"a": 2, "b": rev}, state)
}

func TestVerify_EveryComparesFromTimeToTime(t *testing.T) {
	f := newReadFixture(t, func(c *engine.Config[pod]) { c.VerifyEvery = time.Minute })
	f.setWrong(true)
	f.put("a", "web", 1)
	f.setWrong(false)
	f.pass(2 * time.Minute)
	found := false
	for _, err := range f.errs {
		found = found || errors.Is(err, engine.ErrInconsistent)
	}
	require.True(t, found, "it is reported: %v", f.errs)
	require.NoError(t, f.Verify(t.Context()))
}

// The longest period is how to say never for storage that others write to, of which zero
// means five minutes.
func TestVerify_EveryMayBeTheLongestTime(t *testing.T) {
	f := newReadFixture(t, func(c *engine.Config[pod]) { c.VerifyEvery = math.MaxInt64 })
	f.put("a", "web", 1)
	f.pass(time.Hour)
	require.Zero(t, f.Stats().Verified)
	require.Empty(t, f.errs)
}

// The error names the first object that storage and the cache do not have alike.
func TestVerify_FindsObjectsThatOneOfTheTwoLacks(t *testing.T) {
	for first, change := range map[string]func(stored []*store.Object) []*store.Object{
		"a":  func(stored []*store.Object) []*store.Object { return stored[1:] },
		"m":  func(stored []*store.Object) []*store.Object { return slices.Delete(stored, 1, 2) },
		"z":  func(stored []*store.Object) []*store.Object { return stored[:2] },
		"0":  func(stored []*store.Object) []*store.Object { return slices.Insert(stored, 0, another("0", stored[0])) },
		"b":  func(stored []*store.Object) []*store.Object { return slices.Insert(stored, 1, another("b", stored[0])) },
		"zz": func(stored []*store.Object) []*store.Object { return append(stored, another("zz", stored[0])) },
	} {
		t.Run(first, func(t *testing.T) {
			f := newReadFixture(t)
			for _, name := range []string{"a", "m", "z"} {
				f.put(name, "web", 1)
			}
			stored := 0
			f.storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpList}, Times: 1, Do: faulty.After(func(_ context.Context, c *faulty.Call) {
				page := *c.Page
				page.Items = change(slices.Clone(page.Items))
				c.Page, stored = &page, len(page.Items)
			})})
			var differs *engine.InconsistencyError
			require.ErrorAs(t, f.Verify(t.Context()), &differs)
			require.Equal(t, first, differs.Key)
			require.Equal(t, [2]int{3, stored}, [2]int{differs.Cache.Objects, differs.Backend.Objects})
		})
	}
}

// another returns a pod like o under another key.
func another(key string, o *store.Object) *store.Object {
	other := *store.As[engine.Object[pod]](o)
	other.Key = key
	return store.Header(&other)
}

// Storage behind a slow link is needed for other things than comparisons.
func TestVerify_EveryLeavesSlowStorageMostOfTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, err := memory.New(cfg().Schema(), memory.Options{})
		require.NoError(t, err)
		storage := faulty.New(inner, faulty.Options{Blocks: true})
		c := cfgOver(storage)
		c.VerifyEvery = time.Minute
		e, err := engine.New(c)
		require.NoError(t, err)
		require.NoError(t, e.WaitForRevision(t.Context(), 1))
		storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpList}, Do: faulty.Delay(10 * time.Minute)})
		time.Sleep(1000 * time.Minute)
		verified := e.Stats().Verified
		require.NoError(t, e.Close())
		require.NoError(t, storage.Close())
		require.Positive(t, verified)
		require.LessOrEqual(t, verified, uint64(10))
	})
}

// A comparison that Close cuts short has found nothing that its user should know.
func TestVerify_ThatIsCutShortByCloseReportsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, err := memory.New(cfg().Schema(), memory.Options{})
		require.NoError(t, err)
		storage := faulty.New(inner, faulty.Options{})
		var errs []error
		c := cfgOver(storage)
		c.VerifyEvery, c.OnError = time.Minute, func(err error) { errs = append(errs, err) }
		e, err := engine.New(c)
		require.NoError(t, err)
		require.NoError(t, e.WaitForRevision(t.Context(), 1))
		lists := storage.Calls(faulty.OpList)
		storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpList}, Do: faulty.Hang()})
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		require.Equal(t, lists+1, storage.Calls(faulty.OpList), "a comparison is under way")
		require.NoError(t, e.Close())
		require.Empty(t, errs)
		require.NoError(t, storage.Close())
	})
}

// A comparison that fails is followed by others, even if the clock fails, too.
func TestVerify_EveryGoesOnAfterAFailure(t *testing.T) {
	var wire *clocktest.Failing
	f := newFixture(t, func(host *engine.HostConfig, c *engine.Config[thing]) {
		wire = &clocktest.Failing{Clock: host.Clock}
		host.Clock, c.VerifyEvery = wire, time.Minute
	})
	f.fault(1, faulty.Before(func(context.Context, *faulty.Call) {
		wire.Fail(clocktest.Stop, 0, 1)
		panic("storage fails")
	}), faulty.OpList)
	f.pass(2 * time.Minute)
	require.Len(t, f.failures, 2)
	require.Zero(t, wire.Left(clocktest.Stop))
	f.pass(2 * time.Minute)
	require.Positive(t, f.engine.Stats().Verified)
}
