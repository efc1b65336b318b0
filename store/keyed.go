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
// key, in order, and indexes that find their keys by value.
//
// It is copy-on-write: a view takes constant time and shares all nodes, and later
// writes copy the nodes on their paths.
type keyed[P any] struct {
	items   *btree.Map[string, P]
	indexes []valueIndex
}

func newKeyed[P any](indexes int) keyed[P] {
	k := keyed[P]{items: btree.NewMap[string, P](degree)}
	for range indexes {
		k.indexes = append(k.indexes, newValueIndex())
	}
	return k
}

// view returns an immutable copy.
func (k keyed[P]) view() keyed[P] {
	v := keyed[P]{k.items.Copy(), slices.Clone(k.indexes)}
	for i := range v.indexes {
		v.indexes[i].entries = v.indexes[i].entries.Copy()
	}
	return v
}

// fork returns a copy to write to. It is safe for concurrent use: the library's Copy
// writes to the tree that it copies, so fork copies the root first and calls Copy of that.
func (k keyed[P]) fork() keyed[P] {
	items, indexes := *k.items, slices.Clone(k.indexes)
	for i := range indexes {
		entries := *indexes[i].entries
		indexes[i].entries = &entries
	}
	return keyed[P]{&items, indexes}.view()
}

// withValue calls yield with the items that have value in the i-th index and keys not
// below from, in the order of their keys, until it returns false.
func (k keyed[P]) withValue(i int, value, from string, yield func(key string, item P) bool) {
	find := finder[P]{items: k.items, at: k.items.Iter()}
	k.indexes[i].ascend(value, from, func(key string) bool { return yield(key, find.item(key)) })
}

// finder finds items by ascending keys, each of which has one. If the first of them are close
// to each other it goes from one to the next, otherwise it searches for each: where a third
// of all items have a value of an index, searches take four times as long.
type finder[P any] struct {
	items *btree.Map[string, P]
	at    btree.MapIter[string, P]
	// found is how many items at has found, and close how many of them were close to the
	// one before; neither counts beyond sample.
	found, close int
}

const (
	// sample is how many items decide whether they are close to each other.
	sample = 8
	// stepsPerSearch is how many steps take about as long as a search.
	stepsPerSearch = 8
)

// item returns the item under key.
func (f *finder[P]) item(key string) P {
	if f.found == sample && f.close < sample/2 {
		item, _ := f.items.Get(key)
		return item
	}
	isClose := f.found > 0 && f.step(key)
	if !isClose {
		f.at.Seek(key)
	}
	if f.found < sample {
		f.found++
		if isClose {
			f.close++
		}
	}
	return f.at.Value()
}

// step looks for key among the next items.
func (f *finder[P]) step(key string) bool {
	for range stepsPerSearch {
		if !f.at.Next() {
			return false
		}
		if f.at.Key() == key {
			return true
		}
	}
	return false
}

// valueIndex is one index: its entries in the order of value, then key, so that
// the keys of one value are adjacent and in order. A value without keys takes no
// memory.
type valueIndex struct {
	entries *btree.BTreeG[entry]
}

// entry says that the item under key has value. It does not hold the item, so an update
// that leaves the value as it is, the usual case, does not touch the index; a read by index
// looks each item up.
type entry struct{ value, key string }

func (e entry) before(other entry) bool {
	if e.value != other.value {
		return e.value < other.value
	}
	return e.key < other.key
}

func newValueIndex() valueIndex {
	return valueIndex{btree.NewBTreeGOptions(entry.before, btree.Options{NoLocks: true, Degree: degree})}
}

// has reports whether the item under key has value.
func (x valueIndex) has(value, key string) bool {
	_, found := x.entries.Get(entry{value, key})
	return found
}

// ascend yields the keys of a value that are not below from, in order.
func (x valueIndex) ascend(value, from string, yield func(key string) bool) {
	x.entries.Ascend(entry{value, from}, func(e entry) bool {
		return e.value == value && yield(e.key)
	})
}

// values returns the values that have keys, in order. It seeks from one value to
// the next, so the cost is that of the values, not of the keys.
func (x valueIndex) values() (values []string) {
	var next entry
	for found := true; found; {
		found = false
		x.entries.Ascend(next, func(e entry) bool {
			values = append(values, e.value)
			next.value, found = e.value+"\x00", true
			return false
		})
	}
	return values
}
