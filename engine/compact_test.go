package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store/backend/faulty"
)

// Before a compaction the cache serves the past; after it, neither the cache nor the
// backend does, and what is newer is served as before.
func TestCompact_GivesUpThePastInTheCacheToo(t *testing.T) {
	for _, noCache := range []bool{false, true} {
		t.Run(fmt.Sprint("noCache=", noCache), func(t *testing.T) {
			e, ctx := newEngine(t, func(c *engine.Config[pod]) { c.NoCache = noCache })
			var revs []engine.Revision
			for i := range 700 { // more than a chunk of the window
				o, err := e.Create(ctx, pod{Name: fmt.Sprint(i)})
				require.NoError(t, err)
				revs = append(revs, o.Revision)
			}
			running, err := e.Watch(ctx, engine.WatchOptions{})
			require.NoError(t, err)
			old, kept, newest := revs[9], revs[400], revs[699]
			require.NoError(t, e.WaitForRevision(ctx, newest))
			before, err := e.List(ctx, engine.ListOptions{Read: engine.Exactly(old)})
			require.NoError(t, err)
			require.Len(t, before.Items, 10)

			require.NoError(t, e.Compact(ctx, kept))
			for _, rev := range []engine.Revision{old, kept - 1} {
				_, err = e.List(ctx, engine.ListOptions{Read: engine.Exactly(rev)})
				require.ErrorIs(t, err, engine.ErrExpired, "list at %d", rev)
				_, err = e.Watch(ctx, engine.WatchOptions{From: rev})
				require.ErrorIs(t, err, engine.ErrExpired, "watch from %d", rev)
			}
			after, err := e.List(ctx, engine.ListOptions{Read: engine.Exactly(kept)})
			require.NoError(t, err)
			require.Len(t, after.Items, 401)
			w, err := e.Watch(ctx, engine.WatchOptions{From: kept})
			require.NoError(t, err)
			require.Len(t, until(t, ctx, w, newest), 299)

			o, err := e.Create(ctx, pod{Name: "next"})
			require.NoError(t, err)
			require.Len(t, until(t, ctx, running, o.Revision), 1, "a watch that is not behind goes on")
		})
	}
}

// What begins with the last events goes no further back than what was kept.
func TestCompact_LastEventsAreThoseThatAreKept(t *testing.T) {
	e, ctx := newEngine(t, nil)
	var newest engine.Revision
	for i := range 10 {
		o, err := e.Create(ctx, pod{Name: fmt.Sprint(i)})
		require.NoError(t, err)
		newest = o.Revision
	}
	require.NoError(t, e.WaitForRevision(ctx, newest))
	require.NoError(t, e.Compact(ctx, newest-3))
	w, err := e.Watch(ctx, engine.WatchOptions{Last: 10})
	require.NoError(t, err)
	require.Len(t, until(t, ctx, w, newest), 3)
}

// The cache takes what was written before a compaction before the backend discards it: an
// object that came and went between would leave no event.
func TestCompact_RightAfterAWriteDiscardsNothingThatTheCacheLacks(t *testing.T) {
	f := newFixture(t, nil)
	w := f.watch(engine.WatchOptions{})
	f.write("a")
	gone, err := f.engine.Delete(t.Context(), "a", engine.DeleteOptions{})
	require.NoError(t, err)
	require.NoError(t, f.engine.Compact(t.Context(), gone.Revision))
	f.requireReads(w, "ADDED a@2", "DELETED a@3")
	require.Zero(t, f.engine.Stats().Relists)
}

// A cache that is behind the compaction does not serve what it then passes.
func TestCompact_OfWhatTheCacheHasNotReached(t *testing.T) {
	f := newSeededFixture(t, 1)
	first := f.put("a")
	f.fault(0, faulty.Hang(), faulty.OpNext)
	second := f.put("b")
	third := f.put("c")
	require.Equal(t, first, f.engine.Revision())
	require.NoError(t, f.engine.Compact(t.Context(), second))
	_, err := f.engine.Watch(t.Context(), engine.WatchOptions{From: first - 1})
	require.ErrorIs(t, err, engine.ErrExpired)
	f.heal()
	require.NoError(t, f.engine.WaitForRevision(t.Context(), third))
	_, err = f.engine.List(t.Context(), engine.ListOptions{Read: engine.Exactly(first)})
	require.ErrorIs(t, err, engine.ErrExpired)
	_, err = f.engine.Watch(t.Context(), engine.WatchOptions{From: first})
	require.ErrorIs(t, err, engine.ErrExpired)
	w := f.watch(engine.WatchOptions{From: third})
	f.put("d")
	f.requireReads(w, "ADDED d@5")
}

// A cache that storage does not serve does not prevent a compaction.
func TestCompact_WhileTheCacheIsNotReady(t *testing.T) {
	f := newReadFixture(t)
	first := f.put("a", "web", 1)
	unwatched := f.storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpWatch}, Do: faulty.Fail(errDown)})
	f.storage.BreakWatches(errDown)
	second := f.put("a", "web", 2)
	require.False(t, f.Stats().Ready)
	require.NoError(t, f.within(time.Minute).Compact(t.Context(), second))
	compacted, err := f.storage.Compacted(t.Context())
	require.NoError(t, err)
	require.Equal(t, second, compacted)
	unwatched.Remove()
	require.NoError(t, f.within(time.Minute).WaitReady(t.Context()))
	_, err = f.List(t.Context(), engine.ListOptions{Read: engine.Exactly(first)})
	require.ErrorIs(t, err, engine.ErrExpired)
}

// Storage says at once that a revision has not happened: the cache is not waited for.
func TestCompact_OfTheFutureFailsAtOnce(t *testing.T) {
	f := newReadFixture(t)
	began := f.clock.Now()
	require.ErrorIs(t, f.within(time.Minute).Compact(t.Context(), 99), engine.ErrFuture)
	require.Equal(t, began, f.clock.Now())
}

// A compaction that fails leaves the cache as it was; a closed engine makes none.
func TestCompact_Refused(t *testing.T) {
	e, ctx := newEngine(t, nil)
	o, err := e.Create(ctx, pod{Name: "a"})
	require.NoError(t, err)
	require.ErrorIs(t, e.Compact(ctx, o.Revision+1), engine.ErrFuture)
	require.NoError(t, e.WaitForRevision(ctx, o.Revision))
	_, err = e.Watch(ctx, engine.WatchOptions{From: o.Revision - 1})
	require.NoError(t, err)
	require.NoError(t, e.Close())
	require.ErrorIs(t, e.Compact(context.Background(), o.Revision), engine.ErrEngineClosed)
}
