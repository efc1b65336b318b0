package store

import (
	"slices"
	"strings"

	"github.com/tidwall/btree"
)

// posting says that the item under key has value in an index.
type posting struct{ value, key string }

func (p posting) before(q posting) bool {
	if c := strings.Compare(p.value, q.value); c != 0 {
		return c < 0
	}
	return p.key < q.key
}

// postings is one index: its name, its function, and every (value, key) pair in
// order. It holds keys, not items, so that an update which does not change an
// item's values, the usual case, does not touch it. A value without keys takes no
// memory.
type postings[T any] struct {
	name   string
	valuer IndexFunc[T]
	tree   *btree.BTreeG[posting]
}

func newPostings[T any](name string, valuer IndexFunc[T]) postings[T] {
	tree := btree.NewBTreeGOptions(posting.before, btree.Options{NoLocks: true})
	return postings[T]{name: name, valuer: valuer, tree: tree}
}

// view returns an immutable copy; it takes constant time, and makes the next
// writes copy the nodes that they touch.
func (p postings[T]) view() postings[T] {
	p.tree = p.tree.IsoCopy()
	return p
}

// empty returns the same index without contents.
func (p postings[T]) empty() postings[T] { return newPostings(p.name, p.valuer) }

// valuesOf computes the item's values.
func (p postings[T]) valuesOf(key string, item T) ([]string, error) {
	values, err := contained("IndexFunc", p.valuer, item)
	if err != nil {
		return nil, &IndexFuncError{Index: p.name, Key: key, Err: err}
	}
	return values, nil
}

// move replaces the old values of key by the new ones.
func (p postings[T]) move(key string, had, has []string) {
	if slices.Equal(had, has) {
		return
	}
	for _, value := range had {
		p.tree.Delete(posting{value, key})
	}
	for _, value := range has {
		p.tree.Set(posting{value, key})
	}
}

// keys calls yield with the keys that have value, in order, until it returns
// false.
func (p postings[T]) keys(value string, yield func(key string) bool) {
	p.tree.Ascend(posting{value: value}, func(at posting) bool {
		return at.value == value && yield(at.key)
	})
}

// values returns the values that some key has, in order. It seeks from one
// value to the next, so the cost is that of the values, not of the keys.
func (p postings[T]) values() []string {
	var values []string
	next := posting{}
	for {
		found := false
		p.tree.Ascend(next, func(at posting) bool {
			values = append(values, at.value)
			next.value, found = at.value+"\x00", true
			return false
		})
		if !found {
			return values
		}
	}
}
