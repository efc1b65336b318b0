package store

import (
	"slices"

	"github.com/tidwall/btree"
)

// degree is the B-tree's: a node has up to twice as many items. A write after a
// view copies one node on each level, a read visits one: a larger degree makes
// writes after views slower and reads faster.
const degree = 16

// keyed is the structure below [Tree] and [ThreadSafeStore]: items of type P by
// key, in order, and indexes that find them by value, with entries of type E.
//
// It is copy-on-write: a view takes constant time and shares all nodes, and later
// writes copy the nodes on their paths.
type keyed[P, E any] struct {
	items   *btree.Map[string, P]
	indexes []valueIndex[E]
}

func newKeyed[P, E any](indexes int) keyed[P, E] {
	k := keyed[P, E]{items: btree.NewMap[string, P](degree)}
	for range indexes {
		k.indexes = append(k.indexes, newValueIndex[E]())
	}
	return k
}

// view returns an immutable copy.
func (k keyed[P, E]) view() keyed[P, E] {
	v := keyed[P, E]{k.items.Copy(), slices.Clone(k.indexes)}
	for i := range v.indexes {
		v.indexes[i].entries = v.indexes[i].entries.Copy()
	}
	return v
}

// fork returns a copy to write to. It is safe for concurrent use: the copies of
// the library write to the tree that they copy, so this copies its root first.
func (k keyed[P, E]) fork() keyed[P, E] {
	items, indexes := *k.items, slices.Clone(k.indexes)
	for i := range indexes {
		entries := *indexes[i].entries
		indexes[i].entries = &entries
	}
	return keyed[P, E]{&items, indexes}.view()
}

// valueIndex is one index: its entries in the order of value, then key, so that
// the keys of one value are adjacent and in order. A value without keys takes no
// memory.
type valueIndex[E any] struct {
	entries *btree.BTreeG[entry[E]]
}

// entry says that the item under key has value. The index of a [Tree] holds the
// item itself, which makes reads fast and every write touch it; that of a
// [ThreadSafeStore] holds nothing, so that an update which does not change an item's
// values, the usual case, does not touch it.
type entry[E any] struct {
	value, key string
	item       E
}

func (e entry[E]) before(other entry[E]) bool {
	if e.value != other.value {
		return e.value < other.value
	}
	return e.key < other.key
}

func newValueIndex[E any]() valueIndex[E] {
	return valueIndex[E]{btree.NewBTreeGOptions(entry[E].before, btree.Options{NoLocks: true, Degree: degree})}
}

// get returns the item of a value and key.
func (x valueIndex[E]) get(value, key string) (item E, found bool) {
	e, found := x.entries.Get(entry[E]{value: value, key: key})
	return e.item, found
}

// ascend yields the entries of a value with keys not below from, in order.
func (x valueIndex[E]) ascend(value, from string, yield func(key string, item E) bool) {
	x.entries.Ascend(entry[E]{value: value, key: from}, func(e entry[E]) bool {
		return e.value == value && yield(e.key, e.item)
	})
}

// values returns the values that have keys, in order. It seeks from one value to
// the next, so the cost is that of the values, not of the keys.
func (x valueIndex[E]) values() (values []string) {
	var next entry[E]
	for found := true; found; {
		found = false
		x.entries.Ascend(next, func(e entry[E]) bool {
			values = append(values, e.value)
			next.value, found = e.value+"\x00", true
			return false
		})
	}
	return values
}
