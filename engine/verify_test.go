package engine_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
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
