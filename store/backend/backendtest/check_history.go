package backendtest

import (
	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

var historyChecks = []check{
	{"Compact_GivesUpOlderStates", func(x *fixture) {
		a := x.create("a", "1")
		a2 := x.update(a, "2")
		a3 := x.update(a2, "3")
		x.lists(backend.ListOptions{Revision: a.Revision}, a)
		require.Zero(x, x.compacted(), "nothing was compacted yet")
		x.compact(a2.Revision)
		require.Equal(x, a2.Revision, x.compacted())
		_, err := x.Backend.List(x.ctx, backend.ListOptions{Revision: a.Revision})
		x.fails(err, store.ErrExpired, "a list before the compacted revision")
		_, err = x.Backend.List(x.ctx, backend.ListOptions{Revision: a.Revision, Limit: 1})
		x.fails(err, store.ErrExpired, "a page before the compacted revision")
		x.lists(backend.ListOptions{Revision: a2.Revision}, a2)
		x.lists(backend.ListOptions{Revision: a3.Revision}, a3)
		x.holds(a3)
	}},
	{"Compact_GoesForwardOnly", func(x *fixture) {
		a := x.create("a", "1")
		a2 := x.update(a, "2")
		x.compact(a2.Revision)
		x.compact(a.Revision)
		require.Equal(x, a2.Revision, x.compacted(), "an older compaction does nothing")
		for _, rev := range future(x.revision()) {
			x.fails(x.Backend.Compact(x.ctx, rev), store.ErrFuture, "compaction at %d, which has not happened", rev)
		}
		require.Equal(x, a2.Revision, x.compacted())
		if x.Backend.Traits().Contiguous {
			require.Equal(x, a2.Revision, x.revision(), "a compaction is not a change")
		}
	}},
	{"Compact_EarlierWatchesExpire", func(x *fixture) {
		a := x.create("a", "1")
		a2 := x.update(a, "2")
		a3 := x.update(a2, "3")
		x.compact(a2.Revision)
		_, err := x.Backend.Watch(x.ctx, backend.WatchOptions{From: a.Revision, Notify: func() {}})
		x.fails(err, store.ErrExpired, "a watch from before the compaction")
		x.follow("", a2.Revision).sees(modified(a2, a3))
		x.follow("", a3.Revision).sees()
		x.follow("", 0).sees()
	}},
	{"Compact_OvertakesALaggingWatch", func(x *fixture) {
		a := x.create("a", "1")
		lagging, current := x.follow("", a.Revision), x.follow("", a.Revision)
		a2 := x.update(a, "2")
		current.sees(modified(a, a2))
		a3 := x.update(a2, "3")
		current.sees(modified(a2, a3))
		x.compact(a3.Revision)
		x.expires(lagging)
		current.sees(modified(a3, x.update(a3, "4")))
	}},
}

func (x *fixture) compacted() store.Revision {
	x.Helper()
	rev, err := x.Backend.Compacted(x.ctx)
	require.NoError(x, err, "Compacted")
	return rev
}

// expires checks that f's watch ends with ErrExpired, and that what it delivers before
// has no gap.
func (x *fixture) expires(f *follower) {
	x.Helper()
	for {
		batch, err := f.watcher.Next(1)
		if err != nil {
			x.fails(err, store.ErrExpired, "the watch was overtaken")
			_, again := f.watcher.Next(1)
			x.fails(again, store.ErrExpired, "it has ended for good")
			return
		}
		require.NotEmpty(x, batch.Events, "the watch was overtaken by compaction, but says that nothing happened")
		f.checkAll(batch)
		require.Equal(x, f.through, batch.After)
		f.through = batch.Through
		require.Less(x, f.through, x.compacted(), "it was not overtaken at all, though nothing kept the history")
	}
}
