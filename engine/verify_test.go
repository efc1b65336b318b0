package engine_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
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

// The cache has objects at the end that storage does not have.
func TestVerify_FindsObjectsBeyondTheLastOfStorage(t *testing.T) {
	f := newReadFixture(t)
	f.put("a", "web", 1)
	f.put("y", "web", 1)
	f.put("z", "web", 1)
	f.storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpList}, Times: 1, Do: faulty.After(func(_ context.Context, c *faulty.Call) {
		shorter := *c.Page
		shorter.Items = shorter.Items[:1]
		c.Page = &shorter
	})})
	var differs *engine.InconsistencyError
	require.ErrorAs(t, f.Verify(t.Context()), &differs)
	require.Equal(t, "y", differs.Key)
	require.Equal(t, [2]int{3, 1}, [2]int{differs.Cache.Objects, differs.Backend.Objects})
}

// A comparison that Close cuts short has found nothing that its user should know.
func TestVerify_ThatIsCutShortByCloseReportsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cfg()
		inner, err := memory.New(c.Schema(), memory.Options{})
		require.NoError(t, err)
		storage := faulty.New(inner, faulty.Options{})
		var errs []error
		c.Backend, c.VerifyEvery, c.OnError = storage, time.Minute, func(err error) { errs = append(errs, err) }
		e, err := engine.New(c)
		require.NoError(t, err)
		require.NoError(t, e.WaitFor(t.Context(), 1))
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
