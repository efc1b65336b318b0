package tree

import (
	"maps"
	"slices"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/internal/indexed"
)

// Load puts objects. Into an empty tree, and if they are in the order of their keys
// without repetition, that takes O(n) for them and each index, besides sorting the
// values of the indexes; otherwise it is the same as a Put of each. It shares the
// objects, but not the slice.
func (t *Tree) Load(objects []*store.Object) { t.core.load(objects) }

func (t *tree) load(objects []*store.Object) {
	if t.len() > 0 || !ascending(objects) {
		for _, o := range objects {
			t.put(o)
		}
		return
	}
	t.view = nil
	for _, o := range objects {
		t.set(o)
	}
	for i, a := range t.attributes {
		for _, e := range entriesOf(a, objects) {
			t.Indexes[i].Entries.Load(e)
		}
	}
}

// ascending reports whether each key is greater than the one before it.
func ascending(objects []*store.Object) bool {
	for i := 1; i < len(objects); i++ {
		if objects[i-1].Key >= objects[i].Key {
			return false
		}
	}
	return true
}

// entriesOf returns the entries of an index on a, in order, of objects in the order of
// their keys. It sorts values, which are usually few, and not entries: it counts the
// entries of each value, and so knows the place of each.
func entriesOf(a store.Attribute, objects []*store.Object) []indexed.Entry {
	places := map[string]int{}
	total := 0
	for _, o := range objects {
		if value, held := a.Of(o); held {
			places[value]++
			total++
		}
	}
	next := 0
	for _, value := range slices.Sorted(maps.Keys(places)) {
		places[value], next = next, next+places[value]
	}
	entries := make([]indexed.Entry, total)
	for _, o := range objects {
		if e, held := entryOf(a, o); held {
			entries[places[e.Value]] = e
			places[e.Value]++
		}
	}
	return entries
}
