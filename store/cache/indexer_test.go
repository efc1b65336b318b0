package cache_test

import (
	"io"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/cache"
	"github.com/watchmill/watchmill/usercode"
)

func requireOwned(t *testing.T, x *cache.Indexer[widget], owner string, names ...string) {
	t.Helper()
	got, err := x.ByIndex("owner", owner)
	require.NoError(t, err)
	require.ElementsMatch(t, names, widgetNames(got))
	keys, err := x.IndexKeys("owner", owner)
	require.NoError(t, err)
	require.Equal(t, widgetNames(got), append([]string{}, keys...), "keys and items agree and are sorted")
}

func TestIndexer_IndexReturnsItemsThatShareAValue(t *testing.T) {
	x := newWidgets(t, cache.Indexers[widget]{"owner": widgetOwners})
	require.NoError(t, x.Replace([]widget{
		{Name: "a", Owner: []string{"x", "y"}}, {Name: "b", Owner: []string{"y", "x"}}, {Name: "c", Owner: []string{"y"}}, {Name: "d", Owner: []string{"z"}},
	}, 1))
	got, err := x.Index("owner", widget{Name: "not stored", Owner: []string{"y", "x"}})
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "c"}, widgetNames(got), "each once")
	got, err = x.Index("owner", widget{})
	require.NoError(t, err)
	require.Empty(t, got)
}

func TestIndexer_ListIndexFuncValues(t *testing.T) {
	x := newWidgets(t, cache.Indexers[widget]{"owner": widgetOwners})
	require.NoError(t, x.Replace([]widget{{Name: "a", Owner: []string{"y"}}, {Name: "b", Owner: []string{"x", ""}}, {Name: "c", Owner: []string{"y", "y\x00"}}}, 1))
	values, err := x.ListIndexFuncValues("owner")
	require.NoError(t, err)
	require.Equal(t, []string{"", "x", "y", "y\x00"}, values, "distinct, ascending")
}

func TestIndexer_SeveralValuesPerItem(t *testing.T) {
	x := newWidgets(t, cache.Indexers[widget]{"owner": widgetOwners})
	ernie := widget{Name: "ernie", Owner: []string{"erin", "tux"}}
	require.NoError(t, x.Add(ernie))
	require.NoError(t, x.Add(widget{Name: "bert", Owner: []string{"erin"}}))
	require.NoError(t, x.Add(widget{Name: "elmo", Owner: []string{"tux", "tux"}}))
	requireOwned(t, x, "erin", "ernie", "bert")
	requireOwned(t, x, "tux", "ernie", "elmo")
	requireOwned(t, x, "nobody")

	require.NoError(t, x.Delete(widget{Name: "elmo"}))
	requireOwned(t, x, "tux", "ernie")
	require.NoError(t, x.Delete(widget{Name: "bert"}))
	requireOwned(t, x, "erin", "ernie")
	require.NoError(t, x.Update(widget{Name: "ernie", Owner: []string{"grover"}}))
	requireOwned(t, x, "erin")
	requireOwned(t, x, "tux")
	requireOwned(t, x, "grover", "ernie")
}

// #84959: values without items stayed in the index forever.
func TestIndexer_RemovesValuesWithoutItems(t *testing.T) {
	x := newWidgets(t, cache.Indexers[widget]{"owner": widgetOwners})
	require.NoError(t, x.Add(widget{Name: "a", Owner: []string{"x"}}))
	require.NoError(t, x.Delete(widget{Name: "a"}))
	values, err := x.ListIndexFuncValues("owner")
	require.NoError(t, err)
	require.Empty(t, values)
}

func TestIndexer_ValueStaysForOtherItems(t *testing.T) {
	x := newWidgets(t, cache.Indexers[widget]{"owner": widgetOwners})
	require.NoError(t, x.Add(widget{Name: "a", Owner: []string{"x"}}))
	require.NoError(t, x.Add(widget{Name: "b", Owner: []string{"x"}}))
	require.NoError(t, x.Delete(widget{Name: "a"}))
	requireOwned(t, x, "x", "b")
}

func TestIndexer_RefusesAnUnknownIndex(t *testing.T) {
	x := newWidgets(t, nil)
	_, indexErr := x.Index("owner", widget{})
	_, byErr := x.ByIndex("owner", "x")
	_, allErr := x.AllByIndex("owner", "x")
	_, keysErr := x.IndexKeys("owner", "x")
	_, valuesErr := x.ListIndexFuncValues("owner")
	for _, err := range []error{indexErr, byErr, allErr, keysErr, valuesErr} {
		require.ErrorIs(t, err, store.ErrUnknownIndex)
		require.ErrorContains(t, err, `"owner"`)
	}
}

// #117046: indexers could only be added while there was nothing to index.
func TestAddIndexers_IndexesWhatIsThere(t *testing.T) {
	x := newWidgets(t, cache.Indexers[widget]{"name": func(w widget) ([]string, error) { return []string{w.Name}, nil }})
	require.NoError(t, x.Add(widget{Name: "a", Owner: []string{"x"}}))
	view := x.View()
	named := func(name string) []string {
		keys, err := view.IndexKeys("name", name)
		require.NoError(t, err)
		return keys
	}
	require.NoError(t, x.AddIndexers(cache.Indexers[widget]{"owner": widgetOwners}))
	requireOwned(t, x, "x", "a")
	require.NoError(t, x.Update(widget{Name: "a", Owner: []string{"y"}}))
	requireOwned(t, x, "x")
	requireOwned(t, x, "y", "a")
	keys, err := x.IndexKeys("name", "a")
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, keys, "the old index is still there")
	_, err = view.ByIndex("owner", "x")
	require.ErrorIs(t, err, store.ErrUnknownIndex, "an older view has no newer index")
	require.NoError(t, x.Delete(widget{Name: "a"}))
	require.NoError(t, x.Add(widget{Name: "b"}))
	require.Equal(t, []string{"a"}, named("a"), "an older view keeps what it had")
	require.Empty(t, named("b"))
}

func TestAddIndexers_AllOrNone(t *testing.T) {
	x := newWidgets(t, cache.Indexers[widget]{"owner": widgetOwners})
	require.NoError(t, x.Add(widget{Name: "a", Owner: []string{"x"}}))
	fails := func(widget) ([]string, error) { return nil, io.ErrUnexpectedEOF }

	err := x.AddIndexers(cache.Indexers[widget]{"another": widgetOwners, "owner": widgetOwners})
	require.ErrorIs(t, err, cache.ErrIndexConflict)
	err = x.AddIndexers(cache.Indexers[widget]{"another": widgetOwners, "fails": fails})
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	err = x.AddIndexers(cache.Indexers[widget]{"another": widgetOwners, "nil": nil})
	require.ErrorIs(t, err, cache.ErrIndexFunc)

	require.Len(t, x.GetIndexers(), 1)
	requireOwned(t, x, "x", "a")
	require.NoError(t, x.Update(widget{Name: "a", Owner: []string{"y"}}), "none of the failures is left")
}

// Upstream an index function that fails panics while the store is locked.
func TestIndexer_ReturnsIndexFuncErrorsAndChangesNothing(t *testing.T) {
	x := newWidgets(t, cache.Indexers[widget]{
		"owner": widgetOwners,
		"strict": func(w widget) ([]string, error) {
			if w.Name == "bad" || w.Rev == 66 {
				return nil, io.ErrUnexpectedEOF
			}
			return []string{"ok"}, nil
		},
	})
	good := widget{Name: "a", Owner: []string{"x"}, Rev: 1}
	require.NoError(t, x.Add(good))
	_, indexErr := x.Index("strict", widget{Name: "bad"})
	for _, err := range []error{
		x.Add(widget{Name: "bad", Owner: []string{"x"}, Rev: 2}),
		x.Update(widget{Name: "a", Owner: []string{"y"}, Rev: 66}),
		x.Replace([]widget{{Name: "b"}, {Name: "bad"}}, 7),
		indexErr,
	} {
		require.ErrorIs(t, err, cache.ErrIndexFunc)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		var indexErr *cache.IndexFuncError
		require.ErrorAs(t, err, &indexErr)
		require.Equal(t, "strict", indexErr.Index)
	}
	require.Equal(t, []widget{good}, x.List())
	requireOwned(t, x, "x", "a")
	requireOwned(t, x, "y")
	require.Equal(t, store.Revision(1), x.LastRevision())
}

func TestIndexer_ReturnsIndexFuncPanicsAndGoesOn(t *testing.T) {
	x := newWidgets(t, cache.Indexers[widget]{"first": func(w widget) ([]string, error) { return w.Owner[:1], nil }})
	var panicked *usercode.PanicError
	err := x.Add(widget{Name: "a"})
	require.ErrorIs(t, err, cache.ErrIndexFunc)
	require.ErrorAs(t, err, &panicked)
	require.Implements(t, (*runtime.Error)(nil), panicked.Value)
	require.Empty(t, x.List())
	require.NoError(t, x.Add(widget{Name: "a", Owner: []string{"x"}}))
}

// #133788: GetIndexers gave out the map that the store went on using.
func TestIndexer_GetIndexersIsACopy(t *testing.T) {
	mine := cache.Indexers[widget]{"owner": widgetOwners}
	x := newWidgets(t, mine)
	delete(mine, "owner")
	delete(x.GetIndexers(), "owner")
	require.Contains(t, x.GetIndexers(), "owner")
	require.NoError(t, x.Add(widget{Name: "a", Owner: []string{"x"}}))
	requireOwned(t, x, "x", "a")
}

// Upstream: add, change the stored object, delete. The index then still has
// the key, and ByIndex returns [nil].
func TestIndexer_MutatingAStoredObjectCannotCorruptIndexes(t *testing.T) {
	x, err := cache.NewIndexer(
		cache.StoreConfig[*widget]{Key: func(w *widget) (string, error) { return w.Name, nil }},
		cache.Indexers[*widget]{"owner": func(w *widget) ([]string, error) { return w.Owner, nil }},
	)
	require.NoError(t, err)
	a := &widget{Name: "a", Owner: []string{"x"}}
	require.NoError(t, x.Add(a))
	a.Owner[0] = "y"
	a.Owner = append(a.Owner, "z")

	got, err := x.ByIndex("owner", "x")
	require.NoError(t, err)
	require.Equal(t, []*widget{a}, got, "found by what it said when it was stored")
	require.NoError(t, x.AddIndexers(cache.Indexers[*widget]{"late": func(w *widget) ([]string, error) { return w.Owner, nil }}))

	require.NoError(t, x.Delete(a))
	for _, index := range []string{"owner", "late"} {
		values, err := x.ListIndexFuncValues(index)
		require.NoError(t, err)
		require.Empty(t, values)
	}
}

func TestIndexer_IndexFuncMayReadTheStore(t *testing.T) {
	var x *cache.Indexer[widget]
	x = newWidgets(t, cache.Indexers[widget]{"siblings": func(w widget) ([]string, error) { return x.ListKeys(), nil }})
	require.NoError(t, x.Add(widget{Name: "a"}))
	require.NoError(t, x.Add(widget{Name: "b"}))
	keys, err := x.IndexKeys("siblings", "a")
	require.NoError(t, err)
	require.Equal(t, []string{"b"}, keys)
}

func TestAllByIndex_StopsWhenToldTo(t *testing.T) {
	x := newWidgets(t, cache.Indexers[widget]{"owner": widgetOwners})
	require.NoError(t, x.Replace([]widget{{Name: "a", Owner: []string{"x"}}, {Name: "b", Owner: []string{"x"}}}, 1))
	all, err := x.AllByIndex("owner", "x")
	require.NoError(t, err)
	var seen []string
	for key, w := range all {
		require.Equal(t, key, w.Name)
		seen = append(seen, key)
		if len(seen) == 1 {
			break
		}
	}
	require.Equal(t, []string{"a"}, seen)
}
