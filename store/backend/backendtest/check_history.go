package backendtest

import (
	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

var historyChecks = []check{
	{"Compact_GivesUpOlderStates", func(r *rig) {
		a := r.create("a", "1")
		a2 := r.update(a, "2")
		a3 := r.update(a2, "3")
		r.lists(backend.ListOptions{Revision: a.Revision}, a)
		require.Zero(r, r.compacted(), "nothing was compacted yet")
		r.compact(a2.Revision)
		require.Equal(r, a2.Revision, r.compacted())
		_, err := r.Backend.List(r.ctx, backend.ListOptions{Revision: a.Revision})
		r.fails(err, store.ErrExpired, "a list before the compacted revision")
		_, err = r.Backend.List(r.ctx, backend.ListOptions{Revision: a.Revision, Limit: 1})
		r.fails(err, store.ErrExpired, "a page before the compacted revision")
		r.lists(backend.ListOptions{Revision: a2.Revision}, a2)
		r.lists(backend.ListOptions{Revision: a3.Revision}, a3)
		r.holds(a3)
	}},
	{"Compact_GoesForwardOnly", func(r *rig) {
		a := r.create("a", "1")
		a2 := r.update(a, "2")
		r.compact(a2.Revision)
		r.compact(a.Revision)
		require.Equal(r, a2.Revision, r.compacted(), "an older compaction does nothing")
		r.fails(r.Backend.Compact(r.ctx, r.revision()+1), store.ErrFuture, "compaction of what has not happened")
		require.Equal(r, a2.Revision, r.compacted())
		if r.Backend.Traits().Contiguous {
			require.Equal(r, a2.Revision, r.revision(), "a compaction is no change")
		}
	}},
	{"Compact_EarlierWatchesExpire", func(r *rig) {
		a := r.create("a", "1")
		a2 := r.update(a, "2")
		a3 := r.update(a2, "3")
		r.compact(a2.Revision)
		_, err := r.Backend.Watch(r.ctx, backend.WatchOptions{From: a.Revision, Notify: func() {}})
		r.fails(err, store.ErrExpired, "a watch from before the compaction")
		r.follow("", a2.Revision).sees(modified(a2, a3))
		r.follow("", a3.Revision).sees()
		r.follow("", 0).sees()
	}},
	{"Compact_OvertakesALaggingWatch", func(r *rig) {
		a := r.create("a", "1")
		lagging, current := r.follow("", a.Revision), r.follow("", a.Revision)
		a2 := r.update(a, "2")
		current.sees(modified(a, a2))
		a3 := r.update(a2, "3")
		current.sees(modified(a2, a3))
		r.compact(a3.Revision)
		r.expires(lagging)
		current.sees(modified(a3, r.update(a3, "4")))
	}},
}

func (r *rig) compacted() store.Revision {
	r.Helper()
	rev, err := r.Backend.Compacted(r.ctx)
	require.NoError(r, err, "Compacted")
	return rev
}

// expires demands that f's watch ends with ErrExpired, and only with that: what
// it gets before must be without a gap.
func (r *rig) expires(f *follower) {
	r.Helper()
	for {
		batch, err := f.watcher.Next(1)
		if err != nil {
			r.fails(err, store.ErrExpired, "the watch was overtaken")
			_, again := f.watcher.Next(1)
			r.fails(again, store.ErrExpired, "it has ended for good")
			return
		}
		require.NotEmpty(r, batch.Events, "the watch was overtaken by compaction, but says that nothing happened")
		f.judgeAll(batch)
		require.Equal(r, f.through, batch.After)
		f.through = batch.Through
		require.Less(r, f.through, r.compacted(), "it was not overtaken at all, though nothing kept the history")
	}
}
