package engine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store/backend/faulty"
)

// What a list reads of the cache is counted beside what it returns, by the index that it
// used.
func TestStats_ListsOfTheCacheByIndex(t *testing.T) {
	f := newReadFixture(t, func(c *engine.Config[pod]) { c.Index = []string{"n"} })
	f.put("a", "web", 1)
	f.put("b", "db", 1)
	f.put("c", "web", 2)
	for _, test := range []struct {
		opts engine.ListOptions
		want engine.CacheLists
	}{
		{engine.ListOptions{}, engine.CacheLists{Fetched: 3, Returned: 3}},
		{engine.ListOptions{Limit: 1}, engine.CacheLists{Fetched: 2, Returned: 1}},
		{engine.ListOptions{Key: "b"}, engine.CacheLists{Fetched: 1, Returned: 1}},
		{engine.ListOptions{Key: "b", Labels: "app=web"}, engine.CacheLists{Fetched: 1}},
		{engine.ListOptions{Key: "z"}, engine.CacheLists{}},
		{engine.ListOptions{Labels: "app!=web,app=db,app=web"}, engine.CacheLists{}},
		{engine.ListOptions{Labels: "app!=web"}, engine.CacheLists{Fetched: 3, Returned: 1}},
		{engine.ListOptions{Labels: "app=web"}, engine.CacheLists{Index: "l:app", Fetched: 2, Returned: 2}},
		{engine.ListOptions{Labels: "app=web", Limit: 1}, engine.CacheLists{Index: "l:app", Fetched: 2, Returned: 1}},
		{engine.ListOptions{Fields: "n=1", Labels: "app!=web"}, engine.CacheLists{Index: "f:n", Fetched: 2, Returned: 1}},
	} {
		before := f.Stats().CacheLists
		require.Len(t, before, 3)
		_, _, err := f.list(test.opts)
		require.NoError(t, err)
		for i, after := range f.Stats().CacheLists {
			more := engine.CacheLists{
				Index: after.Index, Lists: after.Lists - before[i].Lists,
				Fetched: after.Fetched - before[i].Fetched, Returned: after.Returned - before[i].Returned,
			}
			want := engine.CacheLists{Index: after.Index}
			if after.Index == test.want.Index {
				want = test.want
				want.Lists = 1
			}
			require.Equal(t, want, more, "%+v", test.opts)
		}
	}
}

// A list that the cache does not serve is not among those that it has served; an engine
// without a cache has none.
func TestStats_ListsOfTheBackendAreNotTheCaches(t *testing.T) {
	f := newReadFixture(t)
	f.setHeld(true)
	f.put("a", "web", 1)
	f.within(time.Minute).lists(listOf(engine.Latest()), "@2: a=1@2", "revision, list")
	require.Equal(t, []engine.CacheLists{{}, {Index: "l:app"}}, f.Stats().CacheLists)

	uncached, ctx := newEngine(t, func(c *engine.Config[pod]) { c.NoCache = true })
	_, err := uncached.List(ctx, engine.ListOptions{})
	require.NoError(t, err)
	require.Nil(t, uncached.Stats().CacheLists)
}

// Lists of the newest state are counted by what became of them, others not at all.
func TestStats_ConsistentListsByOutcome(t *testing.T) {
	f := newReadFixture(t)
	rev := f.put("a", "web", 1)
	f.lists(listOf(engine.Latest()), "@2: a=1@2", "revision")
	for _, read := range []engine.Read{engine.Cached(), engine.NotOlderThan(rev), engine.Exactly(rev)} {
		_, _, err := f.list(listOf(read))
		require.NoError(t, err)
	}
	require.Equal(t, engine.ConsistentLists{Served: 1}, f.Stats().Consistent)

	noRevision := f.storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpRevision}, Do: faulty.Fail(errDown)})
	_, _, err := f.list(listOf(engine.Latest()))
	require.ErrorIs(t, err, errDown)
	noRevision.Remove()
	require.Equal(t, engine.ConsistentLists{Served: 1, Failed: 1}, f.Stats().Consistent)

	f.setHeld(true)
	f.put("a", "web", 2)
	_, _, err = f.within(time.Minute).list(listOf(engine.Latest()))
	require.NoError(t, err)
	require.Equal(t, engine.ConsistentLists{Served: 1, Failed: 1, FellBack: 1}, f.Stats().Consistent)

	f.storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpList}, Do: faulty.Fail(errDown)})
	_, _, err = f.within(time.Minute).list(listOf(engine.Latest()))
	require.ErrorIs(t, err, errDown)
	require.Equal(t, engine.ConsistentLists{Served: 1, Failed: 1, FellBack: 1, FallbackFailed: 1}, f.Stats().Consistent)
}
