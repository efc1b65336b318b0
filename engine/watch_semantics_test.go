package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
)

// newEngine returns an engine that is ready and is closed with the test, and a context that
// ends a test which hangs.
func newEngine(t testing.TB, change func(*engine.Config[pod])) (*engine.Engine[pod], context.Context) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	c := cfg()
	if change != nil {
		change(&c)
	}
	e, err := engine.New(c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	require.NoError(t, e.WaitFor(ctx, 1)) // or history might begin with what the test writes
	return e, ctx
}

// until collects what the watch shows up to the event at revision last.
func until(t testing.TB, ctx context.Context, w *engine.Watch[pod], last engine.Revision) (seen []string) {
	t.Helper()
	for {
		events, err := w.Next(ctx)
		require.NoError(t, err, "after %v", seen)
		for _, ev := range events {
			seen = append(seen, ev.String())
			if ev.Type != engine.Bookmark && ev.Revision == last {
				return seen
			}
		}
	}
}

// Row 57, RunWatchSemantics, with rows 75 and 88: a start from storage's newest
// revision (RV unset there), from whatever the cache has (RV 0), from an old
// revision and from the current one; with bookmarks and without; with the
// initial state and without; and the two starts of old, which mean the initial
// state. 18 in all.
func TestRow057_WatchSemantics(t *testing.T) {
	starts := []struct {
		name string
		opts engine.WatchOptions
		// replay is what comes without an initial state.
		replay []string
	}{
		{"unset", engine.WatchOptions{Latest: true}, nil},
		{"0", engine.WatchOptions{}, nil},
		{"old", engine.WatchOptions{From: 1}, []string{"ADDED b@2", "ADDED a@3"}},
		{"current", engine.WatchOptions{From: 3}, nil},
	}
	state := []string{"ADDED a@3 initial", "ADDED b@2 initial"}
	for _, start := range starts {
		for _, bookmarks := range []bool{false, true} {
			for _, initial := range []bool{false, true} {
				opts, want := start.opts, start.replay
				opts.Bookmarks, opts.InitialState = bookmarks, initial
				if initial {
					want = state
				}
				if initial && bookmarks {
					want = append(want[:2:2], "BOOKMARK@3 initial-end")
				}
				t.Run(fmt.Sprintf("from=%s/bookmarks=%t/state=%t", start.name, bookmarks, initial),
					func(t *testing.T) { testSemantics(t, opts, want) })
			}
		}
	}
	t.Run("legacy/unset", func(t *testing.T) { testSemantics(t, engine.WatchOptions{InitialState: true, Latest: true}, state) })
	t.Run("legacy/0", func(t *testing.T) { testSemantics(t, engine.WatchOptions{InitialState: true}, state) })
}

func testSemantics(t *testing.T, opts engine.WatchOptions, want []string) {
	e, ctx := newEngine(t, nil)
	for _, name := range []string{"b", "a"} {
		rev, err := e.Create(ctx, pod{Name: name})
		require.NoError(t, err)
		require.NoError(t, e.WaitFor(ctx, rev))
	}
	w, err := e.Watch(ctx, opts)
	require.NoError(t, err)
	rev, err := e.Create(ctx, pod{Name: "c"})
	require.NoError(t, err)
	require.Equal(t, append(want[:len(want):len(want)], "ADDED c@4"), until(t, ctx, w, rev))
	require.Equal(t, rev, w.Revision())
}

// Row 41 and pain 15: what was acknowledged before a Latest watch was asked for
// is in its state, however far behind the cache is.
func TestRow041_LatestStateHasEveryAcknowledgedWrite(t *testing.T) {
	e, ctx := newEngine(t, nil)
	for n := range 50 {
		_, err := e.Create(ctx, pod{Name: fmt.Sprint("pod-", n)})
		require.NoError(t, err)
		w, err := e.Watch(ctx, engine.WatchOptions{InitialState: true, Latest: true})
		require.NoError(t, err)
		events, err := w.Next(ctx)
		require.NoError(t, err)
		require.Len(t, events, n+1)
		w.Stop()
	}
}

// The last events too are those of the acknowledged writes.
func TestLatestLastHasEveryAcknowledgedWrite(t *testing.T) {
	e, ctx := newEngine(t, nil)
	for n := range 50 {
		rev, err := e.Create(ctx, pod{Name: fmt.Sprint("pod-", n)})
		require.NoError(t, err)
		w, err := e.Watch(ctx, engine.WatchOptions{Last: 1, Latest: true})
		require.NoError(t, err)
		events, err := w.Next(ctx)
		require.NoError(t, err)
		require.Equal(t, rev, events[0].Revision)
		w.Stop()
	}
}

// Breaking out of a loop leaves the watch as it is: ranging again goes on with
// the next event, whether one at a time or in batches.
func TestEventsGoOnWhereALoopWasLeft(t *testing.T) {
	e, ctx := newEngine(t, nil)
	w, err := e.Watch(ctx, engine.WatchOptions{})
	require.NoError(t, err)
	for n := range 10 {
		_, err := e.Put(ctx, pod{Name: "a", N: n + 1})
		require.NoError(t, err)
	}
	require.NoError(t, e.WaitFor(ctx, 11))
	next := engine.Revision(2)
	for range 5 {
		for ev, err := range w.Events() {
			require.NoError(t, err)
			require.Equal(t, next, ev.Revision)
			require.Equal(t, next, w.Revision(), "the consumer stands behind what it was given")
			next++
			break
		}
	}
	for events, err := range w.Batches() {
		require.NoError(t, err)
		require.Equal(t, next, events[0].Revision)
		if next += engine.Revision(len(events)); next == 12 {
			break
		}
	}
}

// A watch has one kind of consumer.
func TestASecondKindOfConsumerIsRefused(t *testing.T) {
	e, ctx := newEngine(t, nil)
	w, err := e.Handle(ctx, engine.WatchOptions{}, func(engine.Event[pod]) {})
	require.NoError(t, err)
	_, err = w.Next(ctx)
	require.ErrorIs(t, err, engine.ErrConsumed)
	for _, err := range w.Events() {
		require.ErrorIs(t, err, engine.ErrConsumed)
	}
	_, open := <-w.Chan()
	require.False(t, open)
}
