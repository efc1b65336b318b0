package cache

import (
	"iter"

	"github.com/watchmill/watchmill/store"
)

// View is a consistent snapshot of a store: its items, indexes and revision.
// It is immutable: any number of goroutines may read it without waiting, and
// iterate over it while the store changes.
//
// Everything is in ascending order of keys. The items are those of the store, not
// copies, and must not be changed; the indexes keep the values from when the items
// were stored.
type View[T any] struct{ records *recordView }

// typed returns an item of a record. A nil interface has no type to assert.
func typed[T any](item any) T {
	t, _ := item.(T)
	return t
}

// Len returns the number of items.
func (v *View[T]) Len() int { return v.records.len() }

// LastRevision returns the revision of the last write or bookmark that had one.
func (v *View[T]) LastRevision() store.Revision { return v.records.lastRevision() }

// GetByKey returns the item under key and whether there is one.
func (v *View[T]) GetByKey(key string) (item T, exists bool) {
	stored, exists := v.records.get(key)
	return typed[T](stored), exists
}

// All iterates over the keys and items.
func (v *View[T]) All() iter.Seq2[string, T] { return v.AllFrom("") }

// AllFrom iterates over the keys and items from the given key on. It seeks, so
// the items before cost nothing.
func (v *View[T]) AllFrom(key string) iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		v.records.from(key, func(key string, item any) bool { return yield(key, typed[T](item)) })
	}
}

// List returns all items in a new slice.
func (v *View[T]) List() []T {
	list := make([]T, 0, v.Len())
	v.records.from("", func(_ string, item any) bool {
		list = append(list, typed[T](item))
		return true
	})
	return list
}

// ListKeys returns all keys in a new slice.
func (v *View[T]) ListKeys() []string { return v.records.keys() }

// Index returns the items that share at least one value of the named index
// with item, which need not be stored, each once. The errors are
// [store.ErrUnknownIndex] and [*IndexFuncError].
func (v *View[T]) Index(name string, item T) ([]T, error) {
	index, err := v.records.index(name)
	if err != nil {
		return nil, err
	}
	values, err := v.records.indexFunctions()[index].of("", item)
	if err != nil {
		return nil, err
	}
	keys := v.records.keysWithValues(index, values...)
	list := make([]T, len(keys))
	for i, key := range keys {
		list[i], _ = v.GetByKey(key)
	}
	return list, nil
}

// ByIndex returns the items that have value in the named index; none is not an
// error. The error is [store.ErrUnknownIndex].
func (v *View[T]) ByIndex(name, value string) ([]T, error) {
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
// index. The error is [store.ErrUnknownIndex].
func (v *View[T]) AllByIndex(name, value string) (iter.Seq2[string, T], error) {
	index, err := v.records.index(name)
	if err != nil {
		return nil, err
	}
	return func(yield func(string, T) bool) {
		v.records.withValue(index, value, func(key string, item any) bool { return yield(key, typed[T](item)) })
	}, nil
}

// IndexKeys returns the keys of the items that have value in the named index.
// The error is [store.ErrUnknownIndex].
func (v *View[T]) IndexKeys(name, value string) ([]string, error) {
	index, err := v.records.index(name)
	if err != nil {
		return nil, err
	}
	return v.records.keysWithValues(index, value), nil
}

// ListIndexFuncValues returns the values that any item has in the named index,
// ascending, each once. The error is [store.ErrUnknownIndex].
func (v *View[T]) ListIndexFuncValues(name string) ([]string, error) {
	index, err := v.records.index(name)
	if err != nil {
		return nil, err
	}
	return v.records.values(index), nil
}

// GetIndexers returns the index functions by name, in a map of the caller's
// own.
func (v *View[T]) GetIndexers() Indexers[T] {
	indexers := make(Indexers[T])
	for _, f := range v.records.indexFunctions() {
		indexers[f.name] = f.given.(IndexFunc[T])
	}
	return indexers
}
