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
type keyed[P any, E keyHolder] struct {
	items   *btree.Map[string, P]
	indexes []valueIndex[E]
}

func newKeyed[P any, E keyHolder](indexes int) keyed[P, E] {
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
type valueIndex[E keyHolder] struct {
	entries *btree.BTreeG[entry[E]]
}

// entry says that an item has value. The index of a [Tree] holds the object, which makes
// reads fast and every write touch the index; that of a [ThreadSafeStore] holds the item's
// key alone, so that an update which does not change an item's values, the usual case,
// does not touch the index. A write after a view copies a node of entries, so their size
// counts.
type entry[E keyHolder] struct {
	value string
	item  E
}

// keyHolder is what an index holds of an item. The key of the zero value is "".
type keyHolder interface{ heldKey() string }

func (o *Object) heldKey() string {
	if o == nil {
		return ""
	}
	return o.Key
}

// keyAlone is the key of an item that an index does not hold.
type keyAlone string

func (k keyAlone) heldKey() string { return string(k) }

func (e entry[E]) before(other entry[E]) bool {
	if e.value != other.value {
		return e.value < other.value
	}
	return e.item.heldKey() < other.item.heldKey()
}

func newValueIndex[E keyHolder]() valueIndex[E] {
	return valueIndex[E]{btree.NewBTreeGOptions(entry[E].before, btree.Options{NoLocks: true, Degree: degree})}
}

// get returns the item of a value with the key that alike holds.
func (x valueIndex[E]) get(value string, alike E) (item E, found bool) {
	e, found := x.entries.Get(entry[E]{value, alike})
	return e.item, found
}

// ascend yields the items of a value with keys not below that of from, in order.
func (x valueIndex[E]) ascend(value string, from E, yield func(item E) bool) {
	x.entries.Ascend(entry[E]{value, from}, func(e entry[E]) bool {
		return e.value == value && yield(e.item)
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
