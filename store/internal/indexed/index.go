package indexed

import "github.com/tidwall/btree"

// Index is one index: its entries in the order of value, then key, so that
// the keys of one value are adjacent and in order. A value without keys takes no
// memory.
type Index struct {
	Entries *btree.BTreeG[Entry]
}

// Entry says that the item under key has value. It does not hold the item, so an update
// that leaves the value as it is, the usual case, does not touch the index; a read by index
// looks each item up.
type Entry struct{ Value, Key string }

func (e Entry) before(other Entry) bool {
	if e.Value != other.Value {
		return e.Value < other.Value
	}
	return e.Key < other.Key
}

func newIndex() Index {
	return Index{btree.NewBTreeGOptions(Entry.before, btree.Options{NoLocks: true, Degree: Degree})}
}

// Has reports whether the item under key has value.
func (x Index) Has(value, key string) bool {
	_, found := x.Entries.Get(Entry{value, key})
	return found
}

// Ascend yields the keys of a value that are not below from, in order.
func (x Index) Ascend(value, from string, yield func(key string) bool) {
	x.Entries.Ascend(Entry{value, from}, func(e Entry) bool {
		return e.Value == value && yield(e.Key)
	})
}

// Values returns the values that have keys, in order. It seeks from one value to
// the next, so the cost is that of the values, not of the keys.
func (x Index) Values() (values []string) {
	var next Entry
	for found := true; found; {
		found = false
		x.Entries.Ascend(next, func(e Entry) bool {
			values = append(values, e.Value)
			next.Value, found = e.Value+"\x00", true
			return false
		})
	}
	return values
}
