package cache_test

import (
	"errors"
	"io"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/cache"
	"github.com/watchmill/watchmill/usercode"
)

// widget is what the tests of the client-side stores keep.
type widget struct {
	Name  string
	Owner []string
	Rev   store.Revision
}

func widgetKey(w widget) (string, error) {
	if w.Name == "" {
		return "", errNameless
	}
	return w.Name, nil
}

func widgetOwners(w widget) ([]string, error) { return w.Owner, nil }

func widgetRevision(w widget) store.Revision { return w.Rev }

var errNameless = errors.New("a widget needs a name")

func newWidgets(t testing.TB, indexers cache.Indexers[widget]) *cache.Indexer[widget] {
	x, err := cache.NewIndexer(cache.StoreConfig[widget]{Key: widgetKey, Revision: widgetRevision}, indexers)
	require.NoError(t, err)
	return x
}

func widgetNames(widgets []widget) []string {
	names := []string{}
	for _, w := range widgets {
		names = append(names, w.Name)
	}
	return names
}

// keeper is what every keyed store does.
type keeper interface {
	Add(widget) error
	Update(widget) error
	Delete(widget) error
	Get(widget) (widget, bool, error)
	GetByKey(string) (widget, bool)
	List() []widget
	ListKeys() []string
	Replace([]widget, store.Revision) error
}

// checkContract holds the contract of a store against s, which must be empty.
// stored is what the store makes of an item.
func checkContract(t *testing.T, s keeper, stored func(widget) widget) {
	a1, a2, b, c := widget{Name: "a", Rev: 1}, widget{Name: "a", Rev: 2}, widget{Name: "b"}, widget{Name: "c"}
	has := func(want widget) {
		t.Helper()
		got, exists, err := s.Get(widget{Name: want.Name})
		require.NoError(t, err)
		require.True(t, exists)
		require.Equal(t, stored(want), got)
		byKey, exists := s.GetByKey(want.Name)
		require.True(t, exists)
		require.Equal(t, got, byKey)
	}
	hasNot := func(name string) {
		t.Helper()
		_, exists, err := s.Get(widget{Name: name})
		require.NoError(t, err)
		require.False(t, exists)
		_, exists = s.GetByKey(name)
		require.False(t, exists)
	}
	require.Empty(t, s.List())
	hasNot("a")
	require.NoError(t, s.Delete(a1), "deleting what is not there does nothing")

	require.NoError(t, s.Add(a1))
	has(a1)
	require.NoError(t, s.Add(a2), "an add replaces")
	has(a2)
	require.NoError(t, s.Update(b), "an update creates")
	has(b)
	require.Equal(t, []string{"a", "b"}, s.ListKeys())
	require.Equal(t, []widget{stored(a2), stored(b)}, s.List())

	require.NoError(t, s.Delete(widget{Name: "a"}))
	hasNot("a")
	require.Equal(t, []widget{stored(b)}, s.List())

	require.NoError(t, s.Replace([]widget{c, a1, a2}, 9))
	require.Equal(t, []widget{stored(a2), stored(c)}, s.List(), "of one key the last counts")
	hasNot("b")
	require.NoError(t, s.Replace(nil, 10))
	require.Empty(t, s.List())
}

func same(w widget) widget { return w }

func TestStore_Contract(t *testing.T) {
	s, err := cache.NewStore(cache.StoreConfig[widget]{Key: widgetKey})
	require.NoError(t, err)
	checkContract(t, s, same)
	checkContract(t, newWidgets(t, nil), same)
	checkContract(t, newWidgets(t, cache.Indexers[widget]{"owner": widgetOwners}), same)
}

func TestStore_ContractWithTransform(t *testing.T) {
	calls := 0
	mark := func(w widget) widget { w.Owner = []string{"transformed"}; return w }
	s, err := cache.NewStore(cache.StoreConfig[widget]{
		Key:       widgetKey,
		Transform: func(w widget) (widget, error) { calls++; return mark(w), nil },
	})
	require.NoError(t, err)
	checkContract(t, s, mark)
	require.Equal(t, 6, calls, "three writes and a replace of three; no read or delete")
}

func TestStore_TransformErrorChangesNothing(t *testing.T) {
	s, err := cache.NewStore(cache.StoreConfig[widget]{
		Key: widgetKey,
		Transform: func(w widget) (widget, error) {
			switch w.Name {
			case "bad":
				return w, io.ErrUnexpectedEOF
			case "worse":
				panic("worse")
			}
			return w, nil
		},
	})
	require.NoError(t, err)
	require.NoError(t, s.Add(widget{Name: "a"}))

	for _, err := range []error{s.Add(widget{Name: "bad"}), s.Replace([]widget{{Name: "b"}, {Name: "bad"}}, 3)} {
		require.ErrorIs(t, err, store.ErrTransform)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	}
	var panicked *usercode.PanicError
	require.ErrorAs(t, s.Update(widget{Name: "worse"}), &panicked)
	require.Equal(t, "worse", panicked.Value)
	require.Equal(t, []string{"a"}, s.ListKeys())
	require.Zero(t, s.LastRevision())
}

func TestStore_KeyErrorKeepsItsCause(t *testing.T) {
	s := newWidgets(t, nil)
	bad := widget{Rev: 7}
	_, _, getErr := s.Get(bad)
	for _, err := range []error{s.Add(bad), s.Update(bad), s.Delete(bad), s.Replace([]widget{{Name: "a"}, bad}, 3), getErr} {
		require.ErrorIs(t, err, store.ErrKeyFunc)
		require.ErrorIs(t, err, errNameless)
		var keyErr *store.KeyFuncError[widget]
		require.ErrorAs(t, err, &keyErr)
		require.Equal(t, bad, keyErr.Item)
	}
	nested := &store.KeyFuncError[widget]{Err: &store.KeyFuncError[int]{Item: 3, Err: errNameless}}
	require.ErrorIs(t, nested, errNameless)
	var inner *store.KeyFuncError[int]
	require.ErrorAs(t, nested, &inner)
	require.Empty(t, s.List())
	require.Zero(t, s.LastRevision())
}

func TestStore_ReturnsKeyFuncPanics(t *testing.T) {
	s, err := cache.NewStore(cache.StoreConfig[*widget]{Key: func(w *widget) (string, error) { return w.Name, nil }})
	require.NoError(t, err)
	err = s.Add(nil)
	require.ErrorIs(t, err, store.ErrKeyFunc)
	var panicked *usercode.PanicError
	require.ErrorAs(t, err, &panicked)
	require.Contains(t, string(panicked.Stack), "TestStore_ReturnsKeyFuncPanics")
	require.NoError(t, s.Add(&widget{Name: "a"}), "the store goes on")
}

func TestStore_TransactionReportsOriginalPositions(t *testing.T) {
	s := newWidgets(t, cache.Indexers[widget]{"owner": func(w widget) ([]string, error) {
		if strings.HasPrefix(w.Name, "bad") {
			return nil, io.ErrUnexpectedEOF
		}
		return w.Owner, nil
	}})
	require.NoError(t, s.Add(widget{Name: "old", Owner: []string{"o"}}))
	err := s.Transaction(
		cache.Transaction[widget]{Type: cache.TransactionAdd, Item: widget{}},
		cache.Transaction[widget]{Type: cache.TransactionAdd, Item: widget{Name: "a", Owner: []string{"x"}}},
		cache.Transaction[widget]{Type: cache.TransactionUpdate, Item: widget{Name: "bad"}},
		cache.Transaction[widget]{Type: cache.TransactionUpdate, Item: widget{Name: "a", Owner: []string{"y"}, Rev: 5}},
		cache.Transaction[widget]{Type: cache.TransactionDelete, Item: widget{Name: "old"}},
		cache.Transaction[widget]{Item: widget{Name: "untyped"}},
	)
	var txnErr *cache.TransactionError
	require.ErrorAs(t, err, &txnErr)
	require.Equal(t, []int{1, 3, 4}, txnErr.Applied)
	require.Equal(t, 6, txnErr.Total)
	require.Len(t, txnErr.Errors, 3)
	for _, cause := range []error{errNameless, io.ErrUnexpectedEOF, store.ErrUnsupported} {
		require.ErrorIs(t, err, cause)
	}
	require.ErrorContains(t, err, "transaction 2: ")

	require.Equal(t, []string{"a"}, s.ListKeys())
	values, err := s.ListIndexFuncValues("owner")
	require.NoError(t, err)
	require.Equal(t, []string{"y"}, values)
	require.NoError(t, s.Transaction(), "an empty transaction is fine")
}

func TestStore_LastRevisionIsThatOfTheLastWrite(t *testing.T) {
	s := newWidgets(t, nil)
	at := func(want store.Revision) {
		t.Helper()
		require.Equal(t, want, s.LastRevision())
		require.Equal(t, want, s.View().LastRevision())
	}
	at(0)
	require.NoError(t, s.Add(widget{Name: "a", Rev: 1}))
	at(1)
	require.NoError(t, s.Update(widget{Name: "a", Rev: 2}))
	at(2)
	require.NoError(t, s.Delete(widget{Name: "a", Rev: 3}))
	at(3)
	s.DeleteByKey("a", 0)
	at(3)
	s.DeleteByKey("a", 4)
	at(4)
	require.NoError(t, s.Add(widget{Name: "without"}))
	at(4)
	require.NoError(t, s.Transaction(
		cache.Transaction[widget]{Type: cache.TransactionAdd, Item: widget{Name: "b", Rev: 5}},
		cache.Transaction[widget]{Type: cache.TransactionDelete, Item: widget{Name: "b", Rev: 6}},
	))
	at(6)
	require.NoError(t, s.Replace([]widget{{Name: "c", Rev: 2}}, 9))
	at(9)
	s.Bookmark(12)
	at(12)
	s.Bookmark(0)
	at(12)
	require.NoError(t, s.AddIndexers(cache.Indexers[widget]{"owner": widgetOwners}))
	at(12)
	require.NoError(t, s.Replace(nil, 0))
	at(12)
}

// Upstream a long List holds up the writer, and reads that follow each other
// see different states (#130767, #27984).
func TestStore_ListIsASnapshotThatHoldsUpNoWriter(t *testing.T) {
	s := newWidgets(t, cache.Indexers[widget]{"owner": widgetOwners})
	require.NoError(t, s.Replace([]widget{{Name: "a", Owner: []string{"x"}}, {Name: "b", Owner: []string{"x"}}}, 4))
	before := s.View()
	var seen []string
	for key := range s.All() {
		seen = append(seen, key)
		require.NoError(t, s.Update(widget{Name: key, Owner: []string{"y"}, Rev: 5}), "writing while listing")
		require.NoError(t, s.Add(widget{Name: key + "2"}))
		require.NoError(t, s.Delete(widget{Name: "b"}))
	}
	require.Equal(t, []string{"a", "b"}, seen)

	require.Equal(t, []string{"a", "b"}, before.ListKeys())
	require.Equal(t, store.Revision(4), before.LastRevision())
	require.Equal(t, 2, before.Len())
	old, err := before.ByIndex("owner", "x")
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, widgetNames(old))
	now, err := s.ByIndex("owner", "y")
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, widgetNames(now))
}

func TestStore_ListsAreTheCallersOwn(t *testing.T) {
	s := newWidgets(t, nil)
	list := []widget{{Name: "a"}, {Name: "b"}}
	require.NoError(t, s.Replace(list, 1))
	list[0].Name = "z"
	s.List()[0].Name = "z"
	s.ListKeys()[0] = "z"
	require.Equal(t, []string{"a", "b"}, s.ListKeys())
	require.Equal(t, map[string]widget{"a": {Name: "a"}, "b": {Name: "b"}}, maps.Collect(s.All()))
}

func TestStore_NeedsAKeyFunc(t *testing.T) {
	_, err := cache.NewStore(cache.StoreConfig[widget]{})
	require.ErrorIs(t, err, cache.ErrNoKeyFunc)
	_, err = cache.NewIndexer(cache.StoreConfig[widget]{}, nil)
	require.ErrorIs(t, err, cache.ErrNoKeyFunc)
	require.ErrorContains(t, err, "StoreConfig.Key")
}

func TestStore_ReturnsRevisionFuncPanics(t *testing.T) {
	s, err := cache.NewStore(cache.StoreConfig[widget]{Key: widgetKey, Revision: func(widget) store.Revision { panic(errNameless) }})
	require.NoError(t, err)
	require.ErrorIs(t, s.Add(widget{Name: "a"}), errNameless)
	require.Empty(t, s.List())
}
