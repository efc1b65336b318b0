package store

import "iter"

// IndexFunc returns the values under which an item is found in an index: none,
// one or several. It must be pure, must not change the item or write the store,
// and may be called from any goroutine. If it fails or panics, the write it was
// called for fails with an [*IndexFuncError] and nothing changes.
type IndexFunc[T any] func(T) ([]string, error)

// Indexers are index functions by the names of their indexes.
type Indexers[T any] map[string]IndexFunc[T]

// Indexer is a [Store] that also finds items by index.
//
// It is safe for concurrent use. Results are in ascending order of keys. The
// indexes keep the values from when an item was stored, so changing it in place
// does not corrupt them.
type Indexer[T any] struct {
	Store[T]
}

// NewIndexer returns an empty store of items with the given indexes, which may
// be nil. The errors are those of [NewStore] and [Indexer.AddIndexers].
func NewIndexer[T any](cfg StoreConfig[T], indexers Indexers[T]) (*Indexer[T], error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	x := &Indexer[T]{Store[T]{cfg: cfg}}
	if err := x.AddIndexers(indexers); err != nil {
		return nil, err
	}
	return x, nil
}

// AddIndexers adds indexes, over the items that are stored already too. Either
// all are added or none. The errors are [ErrIndexConflict] for a name that is
// taken, and [*IndexFuncError] for a function that is nil or fails.
func (x *Indexer[T]) AddIndexers(indexers Indexers[T]) error { return x.items.AddIndexers(indexers) }

// GetIndexers returns the index functions by name, in a map of the caller's
// own.
func (x *Indexer[T]) GetIndexers() Indexers[T] { return x.items.GetIndexers() }

// Index returns the items that share at least one value of the named index
// with item, which need not be stored, each once. The errors are
// [ErrUnknownIndex] and [*IndexFuncError].
func (x *Indexer[T]) Index(name string, item T) ([]T, error) { return x.items.Index(name, item) }

// ByIndex returns the items that have value in the named index; none is not an
// error. The error is [ErrUnknownIndex].
func (x *Indexer[T]) ByIndex(name, value string) ([]T, error) { return x.items.ByIndex(name, value) }

// AllByIndex iterates over the keys and items that have value in the named
// index now. The error is [ErrUnknownIndex].
func (x *Indexer[T]) AllByIndex(name, value string) (iter.Seq2[string, T], error) {
	return x.View().AllByIndex(name, value)
}

// IndexKeys returns the keys of the items that have value in the named index,
// ascending. The error is [ErrUnknownIndex].
func (x *Indexer[T]) IndexKeys(name, value string) ([]string, error) {
	return x.items.IndexKeys(name, value)
}

// ListIndexFuncValues returns the values that any item has in the named index,
// ascending, each once. The error is [ErrUnknownIndex].
func (x *Indexer[T]) ListIndexFuncValues(name string) ([]string, error) {
	return x.items.ListIndexFuncValues(name)
}
