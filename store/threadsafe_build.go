package store

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tidwall/btree"
)

// errNilIndexFunc is the cause when an index has no function.
var errNilIndexFunc = errors.New("the IndexFunc is nil: give it one that returns the item's values")

// rebuilt returns a state with the same indexes over other items. The caller
// holds writing.
func (s *ThreadSafeStore[T]) rebuilt(items *btree.Map[string, T]) (*current[T], error) {
	next := &current[T]{byKey: make(map[string]*cached[T], items.Len())}
	next.revision = s.LastRevision()
	for _, index := range s.live.indexes {
		next.indexes = append(next.indexes, index.empty())
	}
	var err error
	items.Scan(func(key string, item T) bool {
		var values [][]string
		if values, err = s.describe(key, item); err == nil {
			next.load(key, item, values)
			next.move(key, nil, values)
		}
		return err == nil
	})
	return next, err
}

// extended returns a state with the same items and more indexes. The old indexes
// keep their values, even if an item was changed in place since. The caller holds
// writing.
func (s *ThreadSafeStore[T]) extended(indexers Indexers[T]) (*current[T], error) {
	old := s.View()
	added, err := old.admit(indexers)
	if err != nil {
		return nil, err
	}
	next := &current[T]{byKey: make(map[string]*cached[T], old.Len())}
	next.revision = old.revision
	old.items.Scan(func(key string, c *cached[T]) bool {
		var values [][]string
		if values, err = describe(added, key, c.item, nil); err != nil {
			return false
		}
		for i, index := range added {
			index.move(key, nil, values[i])
		}
		next.load(key, c.item, slices.Concat(c.values, values))
		return true
	})
	next.indexes = slices.Concat(s.live.indexes, added)
	return next, err
}

// admit returns new indexes in the order of their names, if they may be added.
func (v *StoreView[T]) admit(indexers Indexers[T]) ([]postings[T], error) {
	var added []postings[T]
	for _, name := range slices.Sorted(maps.Keys(indexers)) {
		if _, err := v.index(name); err == nil {
			return nil, fmt.Errorf("%w: %q: choose another name", ErrIndexConflict, name)
		}
		if indexers[name] == nil {
			return nil, &IndexFuncError{Index: name, Err: errNilIndexFunc}
		}
		added = append(added, newPostings(name, indexers[name]))
	}
	return added, nil
}
