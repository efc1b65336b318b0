package cache

import (
	"fmt"
	"iter"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// StoreConfig says how a [Store] or an [Indexer] treats its items. Only Key is
// required. The functions must not write the store; if one fails or panics, the
// write it was called for fails and nothing changes.
type StoreConfig[T any] struct {
	// Key returns the key of an item.
	Key store.KeyFunc[T]
	// Transform, if any, changes an item before it is stored, for example to drop
	// unused fields. It is called once for each item that is stored, after Key,
	// and never for one that is only looked up or deleted.
	Transform func(T) (T, error)
	// Revision, if any, returns the revision of an item before Transform, for
	// LastRevision; zero if it has none.
	Revision func(T) store.Revision
}

func (c *StoreConfig[T]) validate() error {
	if c.Key == nil {
		return fmt.Errorf("StoreConfig.Key: %w: give a function that returns an item's key", ErrNoKeyFunc)
	}
	return nil
}

// Store keeps the newest item of each key. Make one with [NewStore].
//
// It is safe for concurrent use; see [ThreadSafeStore] for what blocks what.
// Listings are in ascending order of keys. Items are stored and returned without
// copying: to change one, store a changed copy.
type Store[T any] struct {
	cfg   StoreConfig[T]
	items ThreadSafeStore[T]
}

// NewStore returns an empty store of items. The error is
// [ErrNoKeyFunc].
func NewStore[T any](cfg StoreConfig[T]) (*Store[T], error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Store[T]{cfg: cfg}, nil
}

// Add stores item, replacing the one with its key: it is the same as
// [Store.Update].
func (s *Store[T]) Add(item T) error { return s.Update(item) }

// Update stores item, replacing the one with its key, if there is one. The
// errors are [*store.KeyFuncError], [*store.TransformError], a [*usercode.PanicError] of
// [StoreConfig].Revision, and in an [Indexer] [*IndexFuncError].
func (s *Store[T]) Update(item T) error {
	txn, err := s.keyed(Transaction[T]{TransactionUpdate, item})
	if err != nil {
		return err
	}
	return s.items.Update(txn.Key, txn.Item, txn.Revision)
}

// Delete removes the item with item's key, if there is one. The error is a
// [*store.KeyFuncError] or a [*usercode.PanicError] of [StoreConfig].Revision.
func (s *Store[T]) Delete(item T) error {
	txn, err := s.keyed(Transaction[T]{TransactionDelete, item})
	if err != nil {
		return err
	}
	s.items.Delete(txn.Key, txn.Revision)
	return nil
}

// DeleteByKey removes the item with the key, if there is one, for a caller that
// no longer has the item. rev is the revision of the deletion, zero if unknown.
func (s *Store[T]) DeleteByKey(key string, rev store.Revision) { s.items.Delete(key, rev) }

// Replace makes items the only contents; of those with the same key the last
// counts. rev is the revision that they were listed at, zero if unknown. Readers
// see the old contents or the new. The errors are those of [Store.Update]: one bad
// item fails the whole Replace, which then changes nothing.
func (s *Store[T]) Replace(items []T, rev store.Revision) error {
	keyed := make([]KeyedTransaction[T], len(items))
	for i, item := range items {
		var err error
		if keyed[i], err = s.keyed(Transaction[T]{TransactionAdd, item}); err != nil {
			return err
		}
	}
	return s.items.Replace(func(yield func(string, T) bool) {
		for _, txn := range keyed {
			if !yield(txn.Key, txn.Item) {
				return
			}
		}
	}, rev)
}

// Transaction applies all of txns in order and atomically: readers see none or
// all. One that fails is skipped and the others are applied; the error is then a
// [*TransactionError].
func (s *Store[T]) Transaction(txns ...Transaction[T]) error {
	return s.items.transact(len(txns), func(i int) (KeyedTransaction[T], error) { return s.keyed(txns[i]) })
}

// Bookmark records that the store is complete up to rev, without a change. Zero
// is ignored.
func (s *Store[T]) Bookmark(rev store.Revision) { s.items.Bookmark(rev) }

// LastRevision returns the revision of the last write or bookmark that had one:
// the last, which is the largest if the writers keep the order of revisions.
func (s *Store[T]) LastRevision() store.Revision { return s.items.LastRevision() }

// Get returns the stored item with item's key and whether there is one. The
// error is a [*store.KeyFuncError].
func (s *Store[T]) Get(item T) (stored T, exists bool, err error) {
	key, err := s.KeyOf(item)
	if err != nil {
		return stored, false, err
	}
	stored, exists = s.items.Get(key)
	return stored, exists, nil
}

// GetByKey returns the item with the key and whether there is one.
func (s *Store[T]) GetByKey(key string) (item T, exists bool) { return s.items.Get(key) }

// All iterates over the keys and items of the store as it is when the loop
// starts; the loop may write the store.
func (s *Store[T]) All() iter.Seq2[string, T] { return s.items.All() }

// List returns all items in a new slice.
func (s *Store[T]) List() []T { return s.items.List() }

// ListKeys returns all keys in a new slice.
func (s *Store[T]) ListKeys() []string { return s.items.ListKeys() }

// View returns the store as it is now, consistent and immutable, in constant
// time.
func (s *Store[T]) View() *View[T] { return s.items.View() }

// KeyOf returns the key of item. The error is a [*store.KeyFuncError].
func (s *Store[T]) KeyOf(item T) (string, error) { return keyOf("StoreConfig.Key", s.cfg.Key, item) }

// keyOf calls the key function of that name.
func keyOf[T any](name string, key store.KeyFunc[T], item T) (string, error) {
	k, err := contained(name, key, item)
	if err != nil {
		return "", &store.KeyFuncError[T]{Item: item, Err: err}
	}
	return k, nil
}

// contained calls the user's function of that name and returns a panic in it as a
// [*usercode.PanicError].
func contained[In, Out any](name string, fn func(In) (Out, error), in In) (out Out, err error) {
	if panicked := usercode.Call(name, "", func() { out, err = fn(in) }); panicked != nil {
		return out, panicked
	}
	return out, err
}

// keyed runs the user's functions on a transaction.
func (s *Store[T]) keyed(txn Transaction[T]) (KeyedTransaction[T], error) {
	keyed := KeyedTransaction[T]{Type: txn.Type, Item: txn.Item}
	var err error
	if keyed.Key, err = s.KeyOf(txn.Item); err != nil {
		return keyed, err
	}
	if keyed.Revision, err = s.revisionOf(txn.Item); err != nil {
		return keyed, fmt.Errorf("revision of %q: %w", keyed.Key, err)
	}
	if s.cfg.Transform == nil || txn.Type == TransactionDelete {
		return keyed, nil
	}
	if keyed.Item, err = contained("StoreConfig.Transform", s.cfg.Transform, txn.Item); err != nil {
		return keyed, &store.TransformError{Key: keyed.Key, Err: err}
	}
	return keyed, nil
}

func (s *Store[T]) revisionOf(item T) (store.Revision, error) {
	if s.cfg.Revision == nil {
		return 0, nil
	}
	return contained("StoreConfig.Revision", func(item T) (store.Revision, error) { return s.cfg.Revision(item), nil }, item)
}

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
// [store.ErrUnknownIndex] and [*IndexFuncError].
func (x *Indexer[T]) Index(name string, item T) ([]T, error) { return x.items.Index(name, item) }

// ByIndex returns the items that have value in the named index; none is not an
// error. The error is [store.ErrUnknownIndex].
func (x *Indexer[T]) ByIndex(name, value string) ([]T, error) { return x.items.ByIndex(name, value) }

// AllByIndex iterates over the keys and items that have value in the named
// index now. The error is [store.ErrUnknownIndex].
func (x *Indexer[T]) AllByIndex(name, value string) (iter.Seq2[string, T], error) {
	return x.View().AllByIndex(name, value)
}

// IndexKeys returns the keys of the items that have value in the named index,
// ascending. The error is [store.ErrUnknownIndex].
func (x *Indexer[T]) IndexKeys(name, value string) ([]string, error) {
	return x.items.IndexKeys(name, value)
}

// ListIndexFuncValues returns the values that any item has in the named index,
// ascending, each once. The error is [store.ErrUnknownIndex].
func (x *Indexer[T]) ListIndexFuncValues(name string) ([]string, error) {
	return x.items.ListIndexFuncValues(name)
}
