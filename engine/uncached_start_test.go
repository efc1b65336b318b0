package engine_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store/backend/faulty"
)

// moveWindow has an object written right after a call of the operation, so many times or, for zero, each
// time, and all history before that discarded.
func (f *readFixture) moveWindow(after faulty.Op, times int) {
	writes := 0
	f.storage.Add(faulty.Rule{Ops: []faulty.Op{after}, Times: times, Do: faulty.After(func(ctx context.Context, _ *faulty.Call) {
		writes++
		rev, err := revisionOf(f.Put(ctx, pod{Name: "a", App: "web", N: writes}))
		require.NoError(f.t, err)
		require.NoError(f.t, f.storage.Compact(ctx, rev))
	})})
}

// unnamedStarts are watches whose start the engine asks the backend for, and the last of its calls
// that do.
var unnamedStarts = []struct {
	name string
	opts engine.WatchOptions
	asks faulty.Op
	// shows is what the watch shows if the window moves four times, and the object is then written twice.
	shows []string
}{
	{"from now", engine.WatchOptions{}, faulty.OpRevision, []string{"MODIFIED a@7", "MODIFIED a@8"}},
	{"from now, linearizable", engine.WatchOptions{Linearizable: true}, faulty.OpRevision, []string{"MODIFIED a@7", "MODIFIED a@8"}},
	{"with the state", engine.WatchOptions{InitialState: true}, faulty.OpList, []string{"ADDED a@6 initial", "MODIFIED a@7", "MODIFIED a@8"}},
	{"with the state of a revision", engine.WatchOptions{InitialState: true, From: 2}, faulty.OpList, []string{"ADDED a@6 initial", "MODIFIED a@7", "MODIFIED a@8"}},
	{"from the future", engine.WatchOptions{From: 7}, faulty.OpRevision, []string{"MODIFIED a@8"}},
}

// Without a cache, the backend may discard the revision that it has just named, or whose state it has
// just listed. The caller has not named it, so the engine asks for another one.
func TestNoCache_WatchStartsThoughTheBackendsWindowMovesPastItsStart(t *testing.T) {
	for _, start := range unnamedStarts {
		t.Run(start.name, func(t *testing.T) {
			f := newReadFixture(t, func(c *engine.Config[pod]) { c.NoCache = true })
			f.put("a", "web", 0)
			f.moveWindow(start.asks, 4)
			w, err := f.Watch(t.Context(), start.opts)
			require.NoError(t, err)
			f.put("a", "web", 100)
			require.Equal(t, start.shows, until(t, t.Context(), w, f.put("a", "web", 101)))
		})
	}
}

func TestNoCache_WatchGivesUpIfTheBackendsWindowAlwaysMovesPastItsStart(t *testing.T) {
	for _, start := range unnamedStarts {
		t.Run(start.name, func(t *testing.T) {
			f := newReadFixture(t, func(c *engine.Config[pod]) { c.NoCache = true })
			f.put("a", "web", 0)
			f.moveWindow(start.asks, 0)
			before := f.storage.Calls(faulty.OpWatch)
			_, err := f.Watch(t.Context(), start.opts)
			require.ErrorIs(t, err, engine.ErrExpired)
			require.EqualValues(t, 5, f.storage.Calls(faulty.OpWatch)-before)
		})
	}
}

// A revision that the caller has named is not given up for another one.
func TestNoCache_WatchFromARevisionThatIsDiscardedFailsAtOnce(t *testing.T) {
	f := newReadFixture(t, func(c *engine.Config[pod]) { c.NoCache = true })
	f.put("a", "web", 0)
	f.moveWindow(faulty.OpRevision, 1)
	_, err := f.Watch(t.Context(), engine.WatchOptions{From: 2})
	require.ErrorIs(t, err, engine.ErrExpired)
	require.EqualValues(t, 1, f.storage.Calls(faulty.OpWatch))
}

// Nor is the storage of the state for another one that has discarded what was before it.
func TestNoCache_WatchWithTheStateOfStorageThatIsReplacedByAYoungerOneFails(t *testing.T) {
	f := newReadFixture(t, func(c *engine.Config[pod]) { c.NoCache = true })
	f.put("a", "web", 0)
	f.storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpList}, Times: 1, Do: faulty.After(func(ctx context.Context, _ *faulty.Call) {
		f.replaceStorage(7, 0)
		require.NoError(t, f.storage.Compact(ctx, 8))
	})})
	_, err := f.Watch(t.Context(), engine.WatchOptions{InitialState: true})
	require.ErrorIs(t, err, engine.ErrExpired)
	require.EqualValues(t, 1, f.storage.Calls(faulty.OpWatch))
}
