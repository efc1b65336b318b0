package engine_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
)

// What Verify finds it reports, and has mended.
func TestVerify_FindsACacheThatDiffersAndHasItListedAnew(t *testing.T) {
	r := newReadFixture(t)
	r.put("a", "web", 1)
	require.NoError(t, r.Verify(t.Context()))
	w, err := r.Watch(t.Context(), engine.WatchOptions{})
	require.NoError(t, err)

	r.setWrong(true)
	r.put("b", "web", 1)
	r.setWrong(false)

	err = r.Verify(t.Context())
	var differs *engine.InconsistencyError
	require.ErrorAs(t, err, &differs)
	require.Equal(t, "b", differs.Key)
	require.EqualValues(t, 3, differs.Revision)
	r.pass(5 * time.Second)
	require.NoError(t, r.Verify(t.Context()))
	// Nothing has been written since, so no revision is left for the correction
	// to come at: the watch is told that it has to start over.
	require.ErrorIs(t, w.Err(), engine.ErrExpired)
}

func TestVerify_EveryComparesFromTimeToTime(t *testing.T) {
	r := newReadFixture(t, func(c *engine.Config[pod]) { c.VerifyEvery = time.Minute })
	r.setWrong(true)
	r.put("a", "web", 1)
	r.setWrong(false)
	r.pass(2 * time.Minute)
	found := false
	for _, err := range r.errs {
		found = found || errors.Is(err, engine.ErrInconsistent)
	}
	require.True(t, found, "it is reported: %v", r.errs)
	require.NoError(t, r.Verify(t.Context()))
}
