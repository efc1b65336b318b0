package watchcache

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	began   = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	errLost = errors.New("the source is lost")
)

func TestReadiness_ReadyAndPendingAlternateAndStoppedIsLast(t *testing.T) {
	r := readiness{since: began}
	require.ErrorIs(t, r.check(began), ErrNotReady)

	r = r.ready(began.Add(time.Second))
	require.NoError(t, r.check(began))
	require.EqualValues(t, 1, r.generation)

	r = r.pending(began.Add(2*time.Second), errLost)
	require.ErrorIs(t, r.check(began.Add(2*time.Second)), errLost)
	r = r.ready(began.Add(3 * time.Second))
	require.EqualValues(t, 2, r.generation, "every Pending→Ready is a new generation")

	r = r.stopped(began.Add(4 * time.Second))
	require.Equal(t, r, r.ready(began.Add(5*time.Second)))
	require.Equal(t, r, r.pending(began.Add(5*time.Second), errLost))
	require.ErrorIs(t, r.check(began), ErrStopped)
}

// A state that was found to be wrong is wrong until a list, whatever happens to its source.
func TestReadiness_DistrustOutlastsItsCause(t *testing.T) {
	r := readiness{since: began}.ready(began).distrusted(began, ErrInconsistent)
	require.ErrorIs(t, r.check(began), ErrInconsistent)
	down := r.pending(began, errLost)
	require.ErrorIs(t, down.check(began), errLost)
	require.True(t, down.wrong)
	require.True(t, down.ended(began, errLost).wrong)
	require.False(t, down.ready(began).wrong)
}

func TestReadiness_EndedStaysSoUntilStopped(t *testing.T) {
	r := readiness{since: began}.ready(began).ended(began, errLost)
	require.Equal(t, r, r.ready(began.Add(time.Second)))
	require.Equal(t, r, r.pending(began.Add(time.Second), ErrFailed))
	require.EqualError(t, r.check(began), "storage has ended for good: the source is lost")
	r = r.stopped(began)
	require.ErrorIs(t, r.check(began), ErrStopped)
	require.Equal(t, r, r.ended(began, errLost))
}

func TestReadiness_RepeatedSetsChangeNothing(t *testing.T) {
	ready := readiness{since: began}.ready(began)
	require.Equal(t, ready, ready.ready(began.Add(time.Hour)))

	pending := ready.pending(began, errLost)
	again := pending.pending(began.Add(time.Hour), errors.New("another"))
	require.Equal(t, pending.since, again.since, "it has been down since the first")
	require.EqualError(t, again.cause, "another")

	stopped := ready.stopped(began)
	require.Equal(t, stopped, stopped.stopped(began.Add(time.Hour)))
}

// The API server's table, its ends included.
func TestReadiness_RetryAfterGrowsWithTheOutage(t *testing.T) {
	for down, want := range map[time.Duration]time.Duration{
		-time.Hour: time.Second, 0: time.Second, 14 * time.Second: 2 * time.Second, 20 * time.Second: 3 * time.Second,
		30 * time.Second: 6 * time.Second, 40 * time.Second: 11 * time.Second, 57 * time.Second: 30 * time.Second, time.Hour: 30 * time.Second,
	} {
		r := readiness{since: began}
		var notReady *NotReadyError
		require.ErrorAs(t, r.check(began.Add(down)), &notReady)
		require.Equal(t, want, notReady.RetryAfter, "down for %v", down)
	}
}

func TestReadiness_ErrorSaysWhatToDo(t *testing.T) {
	err := readiness{since: began, cause: errLost}.check(began)
	require.EqualError(t, err, "storage is (re)initializing: the source is lost: retry after 1s")
	err = readiness{since: began}.check(began)
	require.EqualError(t, err, "storage is (re)initializing: the cache has not read the state that storage had at the start: retry after 1s")
}

func TestState_Names(t *testing.T) {
	require.Equal(t, "Pending Ready Ended Stopped State(4)", fmt.Sprint(Pending, Ready, Ended, Stopped, Stopped+1))
}
