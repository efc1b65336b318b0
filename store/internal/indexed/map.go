package indexed

import (
	"runtime"
	"slices"

	"github.com/tidwall/btree"
)

// Degree is the B-tree's: a node has up to twice as many items. A write after a
// view copies one node on each level, a read visits one: a larger degree makes
// writes after views slower and reads faster.
const Degree = 16

// Map has items of type P by key, in order, and indexes that find their keys by value.
//
// It is copy-on-write: a view takes constant time and shares all nodes, and later
// writes copy the nodes on their paths.
type Map[P any] struct {
	Items   *btree.Map[string, P]
	Indexes []Index
}

// New returns an empty map with that many indexes.
func New[P any](indexes int) Map[P] {
	m := Map[P]{Items: btree.NewMap[string, P](Degree)}
	for range indexes {
		m.Indexes = append(m.Indexes, newIndex())
	}
	return m
}

// View returns an immutable copy.
func (m Map[P]) View() Map[P] {
	v := Map[P]{m.Items.Copy(), slices.Clone(m.Indexes)}
	for i := range v.Indexes {
		v.Indexes[i].Entries = v.Indexes[i].Entries.Copy()
	}
	return v
}

// Fork returns a copy to write to. It is safe for concurrent use: the library's Copy
// writes to the tree that it copies, so Fork copies the root first and calls Copy of that.
func (m Map[P]) Fork() Map[P] {
	items, indexes := *m.Items, slices.Clone(m.Indexes)
	for i := range indexes {
		entries := *indexes[i].Entries
		indexes[i].Entries = &entries
	}
	return Map[P]{&items, indexes}.View()
}

// WithValue calls yield with the items that have value in the i-th index and keys not
// below from, in the order of their keys, until it returns false.
func (m Map[P]) WithValue(i int, value, from string, yield func(key string, item P) bool) {
	find := finder[P]{items: m.Items, at: m.Items.Iter()}
	m.Indexes[i].Ascend(value, from, func(key string) bool { return yield(key, find.item(key)) })
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

// Scan counts the items that one scan has read.
type Scan struct{ read uint }

// stride is how many items a scan reads before it lets other goroutines run, which
// takes some 100 µs. A scan of 100,000 items would otherwise keep a write waiting for
// the 10 ms after which Go's scheduler preempts it. Each time costs some 10 µs, so a
// scan of a few thousand items does not do it at all.
const stride = 16384

// Step counts an item.
func (s *Scan) Step() {
	if s.read++; s.read%stride == 0 {
		runtime.Gosched()
	}
}
