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
)

// Without a Timeout the context's deadline is the watch's: it gets its last bookmark
// shortly before, and ends with the context's cause.
func TestWatch_TakesItsTimeoutFromTheContext(t *testing.T) {
	for name, noCache := range map[string]bool{"cache": false, "no cache": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := cfg()
				c.NoCache = noCache
				e, err := engine.New(c)
				require.NoError(t, err)
				defer func() { require.NoError(t, e.Close()) }()
				require.NoError(t, e.WaitForRevision(t.Context(), 1))
				began := time.Now()
				ctx, cancel := context.WithDeadlineCause(t.Context(), began.Add(30*time.Second), errPatience)
				defer cancel()
				w, err := e.Watch(ctx, engine.WatchOptions{Bookmarks: true})
				require.NoError(t, err)
				events, err := w.Next(t.Context())
				require.NoError(t, err)
				require.Equal(t, []string{"BOOKMARK@1"}, names(events))
				require.InDelta(t, 28, time.Since(began).Seconds(), 1.5, "shortly before the deadline, and long before the period is over")
				_, err = w.Next(t.Context())
				require.ErrorIs(t, err, errPatience)
				require.Equal(t, 30*time.Second, time.Since(began))
			})
		})
	}
}

var errPatience = errors.New("out of patience")

// A Timeout that is given counts, however long the context lasts.
func TestWatch_TimeoutIsShorterThanTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := engine.New(cfg())
		require.NoError(t, err)
		defer func() { require.NoError(t, e.Close()) }()
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		w, err := e.Watch(ctx, engine.WatchOptions{Timeout: time.Minute})
		require.NoError(t, err)
		_, err = w.Next(t.Context())
		require.ErrorIs(t, err, engine.ErrDeadline)
		require.Equal(t, time.Minute, time.Since(began))
	})
}

// A detached watch outlives its context, so there is no last bookmark for that.
func TestWatch_DetachedHasNoDeadlineFromTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cfg()
		c.BookmarkPeriod = time.Hour
		e, err := engine.New(c)
		require.NoError(t, err)
		defer func() { require.NoError(t, e.Close()) }()
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		w, err := e.Watch(ctx, engine.WatchOptions{Bookmarks: true, Detached: true})
		require.NoError(t, err)
		events, err := w.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"BOOKMARK@1"}, names(events))
		require.Greater(t, time.Since(began), 30*time.Minute)
	})
}

// A period that is out of all reason is no bookmark, but for the last one.
func TestBookmarkPeriod_OfCenturiesOverflowsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cfg()
		c.BookmarkPeriod = math.MaxInt64
		e, err := engine.New(c)
		require.NoError(t, err)
		defer func() { require.NoError(t, e.Close()) }()
		w, err := e.Watch(t.Context(), engine.WatchOptions{Bookmarks: true, Timeout: time.Hour})
		require.NoError(t, err)
		began := time.Now()
		events, err := w.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"BOOKMARK@1"}, names(events))
		require.InDelta(t, time.Hour.Seconds(), time.Since(began).Seconds(), 3)
	})
}
