package indexed_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/watchmill/watchmill/store/internal/indexed"
)

// put stores an item that is its own value in the one index of m, in place of was.
func put(m indexed.Map[string], key, was, item string) {
	m.Items.Set(key, item)
	m.Indexes[0].Entries.Delete(indexed.Entry{Value: was, Key: key})
	m.Indexes[0].Entries.Set(indexed.Entry{Value: item, Key: key})
}

// contents returns the items, and checks that the index finds each of them, from any key on.
func contents(t require.TestingT, m indexed.Map[string], from string) map[string]string {
	items := map[string]string{}
	m.Items.Scan(func(key, item string) bool {
		items[key] = item
		require.True(t, m.Indexes[0].Has(item, key))
		return true
	})
	values := slices.Compact(slices.Sorted(maps.Values(items)))
	require.Equal(t, values, m.Indexes[0].Values())
	for _, value := range values {
		var want, got []string
		for _, key := range slices.Sorted(maps.Keys(items)) {
			if items[key] == value && key >= from {
				want = append(want, key)
			}
		}
		m.WithValue(0, value, from, func(key, item string) bool {
			require.Equal(t, value, item)
			got = append(got, key)
			return true
		})
		require.Equal(t, want, got)
	}
	return items
}

func TestMap_IndexAgreesWithItsItems(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, model := indexed.New[string](1), map[string]string{}
		values := rapid.IntRange(1, 40).Draw(t, "values") // many items have one of a few, few one of many
		for i := range 500 {
			key, item := fmt.Sprintf("%03d", i*7919%300), fmt.Sprint(i*31%values)
			put(m, key, model[key], item)
			model[key] = item
		}
		require.Equal(t, model, contents(t, m, fmt.Sprint(rapid.IntRange(0, 299).Draw(t, "from"))))
	})
}

func TestMap_ViewsAndForksDoNotShareWrites(t *testing.T) {
	m := indexed.New[string](1)
	put(m, "a", "", "old")
	view := m.View()
	fork := view.Fork()
	put(m, "a", "old", "new")
	put(fork, "b", "", "forked")
	require.Equal(t, map[string]string{"a": "new"}, contents(t, m, ""))
	require.Equal(t, map[string]string{"a": "old"}, contents(t, view, ""))
	require.Equal(t, map[string]string{"a": "old", "b": "forked"}, contents(t, fork, ""))
}
