package store

import (
	"fmt"
	"iter"
	"slices"

	"github.com/tidwall/btree"
)

// StoreView is a consistent snapshot of a store: its items, indexes and revision.
// It is immutable: any number of goroutines may read it without waiting, and
// iterate over it while the store changes.
//
// Everything is in ascending order of keys. The items are those of the store, not
// copies, and must not be changed; the indexes keep the values from when the items
// were stored.
type StoreView[T any] struct {
	items    btree.Map[string, *cached[T]]
	indexes  []postings[T]
	revision Revision
}

// Len returns the number of items.
func (v *StoreView[T]) Len() int { return v.items.Len() }

// LastRevision returns the revision of the last write or bookmark that had one.
func (v *StoreView[T]) LastRevision() Revision { return v.revision }

// GetByKey returns the item under key and whether there is one.
func (v *StoreView[T]) GetByKey(key string) (item T, exists bool) {
	if c, ok := v.items.Get(key); ok {
		return c.item, true
	}
	return item, false
}

// All iterates over the keys and items.
func (v *StoreView[T]) All() iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		v.items.Scan(func(key string, c *cached[T]) bool { return yield(key, c.item) })
	}
}

// AllFrom iterates over the keys and items from the given key on. It seeks, so
// the items before cost nothing.
func (v *StoreView[T]) AllFrom(key string) iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		v.items.Ascend(key, func(key string, c *cached[T]) bool { return yield(key, c.item) })
	}
}

// List returns all items in a new slice.
func (v *StoreView[T]) List() []T {
	list := make([]T, 0, v.items.Len())
	v.items.Scan(func(_ string, c *cached[T]) bool {
		list = append(list, c.item)
		return true
	})
	return list
}

// ListKeys returns all keys in a new slice.
func (v *StoreView[T]) ListKeys() []string { return v.items.Keys() }

// Index returns the items that share at least one value of the named index
// with item, which need not be stored, each once. The errors are
// [ErrUnknownIndex] and [*IndexFuncError].
func (v *StoreView[T]) Index(name string, item T) ([]T, error) {
	index, err := v.index(name)
	if err != nil {
		return nil, err
	}
	values, err := index.valuesOf("", item)
	if err != nil {
		return nil, err
	}
	var keys []string
	for _, value := range values {
		index.keys(value, func(key string) bool {
			keys = append(keys, key)
			return true
		})
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	list := make([]T, len(keys))
	for i, key := range keys {
		list[i], _ = v.GetByKey(key)
	}
	return list, nil
}

// ByIndex returns the items that have value in the named index; none is not an
// error. The error is [ErrUnknownIndex].
func (v *StoreView[T]) ByIndex(name, value string) ([]T, error) {
	all, err := v.AllByIndex(name, value)
	if err != nil {
		return nil, err
	}
	var list []T
	for _, item := range all {
		list = append(list, item)
	}
	return list, nil
}

// AllByIndex iterates over the keys and items that have value in the named
// index. The error is [ErrUnknownIndex].
func (v *StoreView[T]) AllByIndex(name, value string) (iter.Seq2[string, T], error) {
	index, err := v.index(name)
	if err != nil {
		return nil, err
	}
	return func(yield func(string, T) bool) {
		index.keys(value, func(key string) bool {
			item, _ := v.GetByKey(key)
			return yield(key, item)
		})
	}, nil
}

// IndexKeys returns the keys of the items that have value in the named index.
// The error is [ErrUnknownIndex].
func (v *StoreView[T]) IndexKeys(name, value string) ([]string, error) {
	index, err := v.index(name)
	if err != nil {
		return nil, err
	}
	var keys []string
	index.keys(value, func(key string) bool {
		keys = append(keys, key)
		return true
	})
	return keys, nil
}

// ListIndexFuncValues returns the values that any item has in the named index,
// ascending, each once. The error is [ErrUnknownIndex].
func (v *StoreView[T]) ListIndexFuncValues(name string) ([]string, error) {
	index, err := v.index(name)
	if err != nil {
		return nil, err
	}
	return index.values(), nil
}

// GetIndexers returns the index functions by name, in a map of the caller's
// own.
func (v *StoreView[T]) GetIndexers() Indexers[T] {
	indexers := make(Indexers[T], len(v.indexes))
	for _, index := range v.indexes {
		indexers[index.name] = index.valuer
	}
	return indexers
}

// index finds an index. There are few, so a linear search is fastest.
func (v *StoreView[T]) index(name string) (postings[T], error) {
	for _, index := range v.indexes {
		if index.name == name {
			return index, nil
		}
	}
	return postings[T]{}, fmt.Errorf("%w %q: add it with AddIndexers", ErrUnknownIndex, name)
}
