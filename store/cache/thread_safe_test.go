package cache_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/cache"
)

// words indexes a string by the words in it.
func words(item string) ([]string, error) {
	if strings.Contains(item, "!") {
		return nil, errors.New("shouting")
	}
	return strings.Fields(item), nil
}

func newWords(t require.TestingT) *cache.ThreadSafeStore[string] {
	s, err := cache.NewThreadSafeStore(cache.Indexers[string]{"words": words})
	require.NoError(t, err)
	return s
}

func TestThreadSafeStore_IndexesFollowChangingValues(t *testing.T) {
	datadriven.RunTest(t, "testdata/indexer_gain_and_loss.txt", newWordsScenario(t))
}

// newWordsScenario returns the verbs of the scenarios: each writes a store
// whose items are texts indexed by their words, and prints the index.
func newWordsScenario(t *testing.T) func(*testing.T, *datadriven.TestData) string {
	s := newWords(t)
	return func(t *testing.T, d *datadriven.TestData) string {
		var err error
		key, text, _ := strings.Cut(d.Input, ":")
		switch d.Cmd {
		case "update":
			err = s.Update(key, text, 0)
		case "delete":
			s.Delete(d.Input, 0)
		case "replace":
			err = s.Replace(func(yield func(string, string) bool) {
				for line := range strings.Lines(d.Input) {
					key, text, _ := strings.Cut(line, ":")
					if !yield(key, text) {
						return
					}
				}
			}, 0)
		default:
			d.Fatalf(t, "unknown verb %q", d.Cmd)
		}
		if err != nil {
			return err.Error() + "\n" + printIndex(t, s)
		}
		return printIndex(t, s)
	}
}

func printIndex(t require.TestingT, s *cache.ThreadSafeStore[string]) string {
	values, err := s.ListIndexFuncValues("words")
	require.NoError(t, err)
	if len(values) == 0 {
		return "(empty)\n"
	}
	var b strings.Builder
	for _, value := range values {
		keys, err := s.IndexKeys("words", value)
		require.NoError(t, err)
		fmt.Fprintf(&b, "%s: %s\n", value, strings.Join(keys, " "))
	}
	return b.String()
}

// Any writes do to the store what they do to a map, in all that can be read of it, and
// old views stay as they were.
func TestThreadSafeStore_AgreesWithAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &modelledStore{store: newWords(t), model: map[string]string{}}
		t.Repeat(map[string]func(*rapid.T){
			"update": m.update, "swap": m.swap, "delete": m.delete, "replace": m.replace, "transaction": m.transaction,
			"view": func(*rapid.T) { m.views = append(m.views, modelledView{m.store.View(), maps.Clone(m.model)}) },
			"":     m.compare,
		})
	})
}

// modelledStore is a store and a map that are written alike. A text with an
// exclamation mark is refused by the store's index.
type modelledStore struct {
	store *cache.ThreadSafeStore[string]
	model map[string]string
	views []modelledView
}

// modelledView is a view of the store and what the map was when it was taken.
type modelledView struct {
	view  *cache.View[string]
	model map[string]string
}

var (
	drawKey  = rapid.StringMatching(`[a-e]`)
	drawText = rapid.StringMatching(`([u-z] ){0,3}!?`)
)

func refused(text string) bool { return strings.Contains(text, "!") }

func (m *modelledStore) update(t *rapid.T) {
	key, text := drawKey.Draw(t, "key"), drawText.Draw(t, "text")
	m.put(t, key, text, m.store.Update(key, text, 0))
}

func (m *modelledStore) swap(t *rapid.T) {
	key, text := drawKey.Draw(t, "key"), drawText.Draw(t, "text")
	was, there := m.model[key]
	old, existed, err := m.store.Swap(key, text, 0)
	if err != nil {
		was, there = "", false
	}
	require.Equal(t, was, old)
	require.Equal(t, there, existed)
	m.put(t, key, text, err)
}

// put has the map have what the store was given, unless it was to be refused, and
// checks the store's error.
func (m *modelledStore) put(t *rapid.T, key, text string, err error) {
	if refused(text) {
		require.ErrorIs(t, err, cache.ErrIndexFunc)
		return
	}
	require.NoError(t, err)
	m.model[key] = text
}

func (m *modelledStore) delete(t *rapid.T) {
	key := drawKey.Draw(t, "key")
	m.store.Delete(key, 0)
	delete(m.model, key)
}

func (m *modelledStore) replace(t *rapid.T) {
	items := rapid.MapOfN(drawKey, drawText, 0, 5).Draw(t, "items")
	err := m.store.Replace(maps.All(items), 0)
	if slices.ContainsFunc(slices.Collect(maps.Values(items)), refused) {
		require.ErrorIs(t, err, cache.ErrIndexFunc)
		return
	}
	require.NoError(t, err)
	m.model = maps.Clone(items)
}

// transaction replaces an item: if the new one is refused, the old one is gone.
func (m *modelledStore) transaction(t *rapid.T) {
	key, text := drawKey.Draw(t, "key"), drawText.Draw(t, "text")
	err := m.store.Transaction(
		cache.KeyedTransaction[string]{Type: cache.TransactionDelete, Key: key},
		cache.KeyedTransaction[string]{Type: cache.TransactionAdd, Key: key, Item: text},
	)
	delete(m.model, key)
	m.put(t, key, text, err)
}

func (m *modelledStore) compare(t *rapid.T) {
	for key, text := range m.model {
		got, exists := m.store.Get(key)
		require.True(t, exists)
		require.Equal(t, text, got)
	}
	requireModel(t, m.store.View(), m.model)
	for _, old := range m.views {
		requireModel(t, old.view, old.model)
	}
}

func requireModel(t require.TestingT, v *cache.View[string], model map[string]string) {
	require.Equal(t, slices.Sorted(maps.Keys(model)), append([]string(nil), v.ListKeys()...))
	require.Equal(t, model, maps.Collect(v.All()))
	tail := maps.Clone(model)
	maps.DeleteFunc(tail, func(key, _ string) bool { return key < "c" })
	require.Equal(t, tail, maps.Collect(v.AllFrom("c")))
	index := map[string][]string{}
	for _, key := range slices.Sorted(maps.Keys(model)) {
		values, err := words(model[key])
		require.NoError(t, err)
		slices.Sort(values)
		for _, value := range slices.Compact(values) {
			index[value] = append(index[value], key)
		}
	}
	values, err := v.ListIndexFuncValues("words")
	require.NoError(t, err)
	require.Equal(t, slices.Sorted(maps.Keys(index)), values)
	for value, keys := range index {
		got, err := v.IndexKeys("words", value)
		require.NoError(t, err)
		require.Equal(t, keys, got)
	}
}

// Every view must be of one moment: writers keep each of their items in two
// places and move them together.
func TestThreadSafeStore_ReadersSeeWholeTransactions(t *testing.T) {
	s := newWords(t)
	var writers, readers sync.WaitGroup
	done := make(chan struct{})
	for w := range 3 {
		writers.Go(func() {
			for i := range 200 {
				text := fmt.Sprintf("w%d-%d", w, i)
				err := s.Transaction(
					cache.KeyedTransaction[string]{Type: cache.TransactionUpdate, Key: "left" + fmt.Sprint(w), Item: text},
					cache.KeyedTransaction[string]{Type: cache.TransactionUpdate, Key: "right" + fmt.Sprint(w), Item: text},
				)
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 2 {
		readers.Go(func() {
			for {
				for key, text := range s.All() {
					v := s.View()
					other, _ := v.GetByKey(strings.Replace(key, "left", "right", 1))
					same, _ := v.GetByKey(key)
					keys, err := v.IndexKeys("words", same)
					if same != other && strings.HasPrefix(key, "left") || err != nil || len(keys) != 2 {
						t.Errorf("torn: %q is %q then %q, its pair %q, indexed %v, %v", key, text, same, other, keys, err)
					}
					s.Get(key)
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
	require.Equal(t, 6, s.View().Len())
}

// Reads of single items are served from the live tree first, and from a view after
// some: neither may miss a write.
func TestThreadSafeStore_GetSeesEachWriteHoweverOftenItIsCalled(t *testing.T) {
	s := newWords(t)
	for i := range 20 {
		text := fmt.Sprint("w", i)
		require.NoError(t, s.Update("a", text, store.Revision(i+1)))
		for range 2 * i {
			got, exists := s.Get("a")
			require.True(t, exists)
			require.Equal(t, text, got)
			require.Equal(t, store.Revision(i+1), s.LastRevision())
		}
	}
}

// An item of an interface type may be nil.
func TestThreadSafeStore_KeepsNilItems(t *testing.T) {
	s, err := cache.NewThreadSafeStore(cache.Indexers[error]{
		"failed": func(err error) ([]string, error) { return []string{fmt.Sprint(err != nil)}, nil },
	})
	require.NoError(t, err)
	require.NoError(t, s.Add("a", nil, 0))
	got, exists := s.Get("a")
	require.True(t, exists)
	require.NoError(t, got)
	keys, err := s.IndexKeys("failed", "false")
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, keys)
}

func TestThreadSafeStore_ZeroValueIsReady(t *testing.T) {
	var s cache.ThreadSafeStore[string]
	require.Empty(t, s.List())
	require.NoError(t, s.Add("a", "x", 3))
	require.Equal(t, []string{"x"}, s.List())
	require.NoError(t, s.AddIndexers(cache.Indexers[string]{"words": words}))
	got, err := s.ByIndex("words", "x")
	require.NoError(t, err)
	require.Equal(t, []string{"x"}, got)
	require.Equal(t, store.Revision(3), s.LastRevision())
}

func TestNewThreadSafeStore_RefusesNilIndexFunc(t *testing.T) {
	_, err := cache.NewThreadSafeStore(cache.Indexers[string]{"words": nil})
	require.ErrorIs(t, err, cache.ErrIndexFunc)
	require.ErrorIs(t, err, cache.ErrNoIndexFunc)
	var indexErr *cache.IndexFuncError
	require.ErrorAs(t, err, &indexErr)
	require.Equal(t, "words", indexErr.Index)
}

func TestTransactionType_HasAName(t *testing.T) {
	require.Equal(t, "add update delete TransactionType(9)", fmt.Sprint(
		cache.TransactionAdd, " ", cache.TransactionUpdate, " ", cache.TransactionDelete, " ", cache.TransactionType(9)))
}
