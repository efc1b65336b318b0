package store

import (
	"slices"
	"strings"

	"github.com/watchmill/watchmill/store/internal/cow"
)

// keyed is the structure below [Tree] and [ThreadSafeStore]: items of type P by
// key, in order, and indexes that find them by value, with entries of type E.
//
// It is copy-on-write: a view takes constant time and shares all nodes, and later
// writes copy the nodes on their paths.
type keyed[P, E any] struct {
	items   cow.Tree[slot[P]]
	indexes []valueIndex[E]
}

func newKeyed[P, E any](indexes int) keyed[P, E] {
	return keyed[P, E]{indexes: make([]valueIndex[E], indexes)}
}

// view returns an immutable copy.
func (k *keyed[P, E]) view() keyed[P, E] {
	v := keyed[P, E]{k.items.View(), slices.Clone(k.indexes)}
	for i := range k.indexes {
		v.indexes[i].entries = k.indexes[i].entries.View()
	}
	return v
}

// fork returns a copy of a view to write to. It is safe for concurrent use.
func (k *keyed[P, E]) fork() keyed[P, E] {
	f := keyed[P, E]{k.items.Fork(), slices.Clone(k.indexes)}
	for i := range f.indexes {
		f.indexes[i].entries = f.indexes[i].entries.Fork()
	}
	return f
}

// slot is an item with its key.
type slot[P any] struct {
	key  string
	item P
}

// placeOf returns the place of the item under key.
func placeOf(key string) cow.Place { return cow.Place{Text: key} }

// Place implements [cow.Entry].
func (s slot[P]) Place() cow.Place { return placeOf(s.key) }

// Compare implements [cow.Entry].
func (s slot[P]) Compare(p cow.Place) int { return strings.Compare(s.key, p.Text) }

// valueIndex is one index: its entries in the order of value, then key, so that
// the keys of one value are adjacent and in order. A value without keys takes no
// memory.
type valueIndex[E any] struct {
	entries cow.Tree[entry[E]]
}

// entry says that the item under key has value. The index of a [Tree] holds the
// item itself, which makes reads fast and every write touch it; that of a
// [ThreadSafeStore] holds nothing, so that an update which does not change an item's
// values, the usual case, does not touch it.
type entry[E any] struct {
	item       E
	value, key string
}

// Place implements [cow.Entry].
func (e entry[E]) Place() cow.Place { return cow.Place{Text: e.value, Key: e.key} }

// Compare implements [cow.Entry].
func (e entry[E]) Compare(p cow.Place) int { return e.Place().Compare(p) }

// get returns the item of a value and key.
func (x *valueIndex[E]) get(value, key string) (item E, found bool) {
	e, found := x.entries.Get(cow.Place{Text: value, Key: key})
	return e.item, found
}

// ascend yields the entries of a value with keys not below from, in order.
func (x *valueIndex[E]) ascend(value, from string, yield func(key string, item E) bool) {
	x.entries.Ascend(cow.Place{Text: value, Key: from}, func(e entry[E]) bool {
		return e.value == value && yield(e.key, e.item)
	})
}

// values returns the values that have keys, in order. It seeks from one value to
// the next, so the cost is that of the values, not of the keys.
func (x *valueIndex[E]) values() (values []string) {
	var next cow.Place
	for found := true; found; {
		found = false
		x.entries.Ascend(next, func(e entry[E]) bool {
			values = append(values, e.value)
			next.Text, found = e.value+"\x00", true
			return false
		})
	}
	return values
}
