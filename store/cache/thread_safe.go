package cache

import (
	"fmt"
	"iter"

	"github.com/watchmill/watchmill/store"
)

// ThreadSafeStore keeps items of type T under keys, with indexes. It is what a
// [Store] and an [Indexer] are built on, for callers that know the key already.
// The zero value is an empty store without indexes.
//
// It is a copy-on-write tree, a lock, and a published view.
//
//	Update, Delete, Replace ──▶ turn: user functions ──▶ lock: tree ──▶ no view
//	List, ByIndex, Get ───────▶ view, or else lock: take one in O(1) and publish it
//
// It is safe for concurrent use. Writers take turns. The user's index functions
// run in a writer's turn but outside the lock that readers take, so they may
// read the store but not write it. If one fails, the write fails and changes
// nothing.
//
// Reads use a [View] and hold no lock while they read it, so a long List does
// not block writers. The first reads after a write take the lock for a moment; and
// the first writes after a view copy the few tree nodes that they touch.
type ThreadSafeStore[T any] struct{ records recordStore }

// NewThreadSafeStore returns an empty store with the given indexes, which may
// be nil. The errors are those of [ThreadSafeStore.AddIndexers].
func NewThreadSafeStore[T any](indexers Indexers[T]) (*ThreadSafeStore[T], error) {
	s := new(ThreadSafeStore[T])
	if err := s.AddIndexers(indexers); err != nil {
		return nil, err
	}
	return s, nil
}

// Add stores item under key, replacing the previous one: it is the same as
// [ThreadSafeStore.Update], with the same error.
func (s *ThreadSafeStore[T]) Add(key string, item T, rev store.Revision) error {
	return s.Update(key, item, rev)
}

// Update stores item under key, replacing the previous one, if any. rev is the
// revision of the change, zero if it has none. The error is an [*IndexFuncError].
func (s *ThreadSafeStore[T]) Update(key string, item T, rev store.Revision) error {
	_, _, err := s.records.swap(key, item, rev)
	return err
}

// Swap is [ThreadSafeStore.Update] that also returns the item that it has replaced, and whether
// there was one; both are zero if there is an error. It costs less than a Get and an Update,
// and no other write comes between.
func (s *ThreadSafeStore[T]) Swap(key string, item T, rev store.Revision) (old T, existed bool, err error) {
	replaced, existed, err := s.records.swap(key, item, rev)
	return typed[T](replaced), existed, err
}

// Delete removes the item under key, if there is one. rev is the revision of
// the change, zero if it has none.
func (s *ThreadSafeStore[T]) Delete(key string, rev store.Revision) { s.records.remove(key, rev) }

// Replace makes items the only contents; of those with the same key the last
// counts. rev is the revision that they were listed at, zero if unknown. Readers
// see the old contents or the new. The error is an [*IndexFuncError].
//
// items is drained before the store is locked, so it may read the store.
func (s *ThreadSafeStore[T]) Replace(items iter.Seq2[string, T], rev store.Revision) error {
	return s.records.replace(func(yield func(string, any) bool) {
		items(func(key string, item T) bool { return yield(key, item) })
	}, rev)
}

// Bookmark records that the store is complete up to rev. Zero is ignored.
func (s *ThreadSafeStore[T]) Bookmark(rev store.Revision) { s.records.bookmark(rev) }

// AddIndexers adds indexes, over the items that are stored already too. Either
// all are added or none. The errors are [ErrIndexConflict] for a name that is
// taken, and [*IndexFuncError] for a function that is nil or fails.
func (s *ThreadSafeStore[T]) AddIndexers(indexers Indexers[T]) error {
	added := make([]indexFunction, 0, len(indexers))
	for name, f := range indexers {
		added = append(added, untyped(name, f))
	}
	return s.records.addIndexes(added)
}

// untyped returns a function for an index of items of any type.
func untyped[T any](name string, f IndexFunc[T]) indexFunction {
	if f == nil {
		return indexFunction{name: name}
	}
	return indexFunction{name, f, func(item any) ([]string, error) { return contained("IndexFunc", f, typed[T](item)) }}
}

// View returns the store as it is now, consistent and immutable.
func (s *ThreadSafeStore[T]) View() *View[T] {
	return &View[T]{s.records.view()}
}

// Get returns the item under key and whether there is one.
func (s *ThreadSafeStore[T]) Get(key string) (item T, exists bool) {
	stored, exists := s.records.get(key)
	return typed[T](stored), exists
}

// All iterates over the keys and items of the store as it is when the loop
// starts.
func (s *ThreadSafeStore[T]) All() iter.Seq2[string, T] {
	return func(yield func(string, T) bool) { s.View().All()(yield) }
}

// List returns all items in a new slice, in ascending order of keys.
func (s *ThreadSafeStore[T]) List() []T { return s.View().List() }

// ListKeys returns all keys in a new slice, ascending.
func (s *ThreadSafeStore[T]) ListKeys() []string { return s.View().ListKeys() }

// Index is [View.Index] of the store as it is now.
func (s *ThreadSafeStore[T]) Index(name string, item T) ([]T, error) {
	return s.View().Index(name, item)
}

// ByIndex is [View.ByIndex] of the store as it is now.
func (s *ThreadSafeStore[T]) ByIndex(name, value string) ([]T, error) {
	return s.View().ByIndex(name, value)
}

// IndexKeys is [View.IndexKeys] of the store as it is now.
func (s *ThreadSafeStore[T]) IndexKeys(name, value string) ([]string, error) {
	return s.View().IndexKeys(name, value)
}

// ListIndexFuncValues is [View.ListIndexFuncValues] of the store as it is
// now.
func (s *ThreadSafeStore[T]) ListIndexFuncValues(name string) ([]string, error) {
	return s.View().ListIndexFuncValues(name)
}

// GetIndexers returns the index functions by name, in a map of the caller's
// own.
func (s *ThreadSafeStore[T]) GetIndexers() Indexers[T] { return s.View().GetIndexers() }

// LastRevision returns the revision of the last write or bookmark that had one.
func (s *ThreadSafeStore[T]) LastRevision() store.Revision { return s.records.lastRevision() }

// TransactionType says what a transaction does.
type TransactionType uint8

// The types of transaction. Add and Update are the same: they store the item
// whether or not there was one.
const (
	TransactionAdd TransactionType = iota + 1
	TransactionUpdate
	TransactionDelete
)

// String returns the type's name in lower case.
func (t TransactionType) String() string {
	switch t {
	case TransactionAdd:
		return "add"
	case TransactionUpdate:
		return "update"
	case TransactionDelete:
		return "delete"
	}
	return fmt.Sprintf("TransactionType(%d)", uint8(t))
}

// Transaction is one of several writes that readers see together, for a
// [Store].
type Transaction[T any] struct {
	Type TransactionType
	Item T
}

// KeyedTransaction is one of several writes that readers see together, for a
// [ThreadSafeStore].
type KeyedTransaction[T any] struct {
	Type TransactionType
	Key  string
	// Item is ignored when the type is TransactionDelete.
	Item T
	// Revision is that of the change, zero if it has none.
	Revision store.Revision
}

// Transaction applies all of txns in order and atomically: readers see none or
// all. One that fails is skipped and the others are applied; the error is then a
// [*TransactionError].
func (s *ThreadSafeStore[T]) Transaction(txns ...KeyedTransaction[T]) error {
	return s.transact(len(txns), func(i int) (KeyedTransaction[T], error) { return txns[i], nil })
}

// transact applies the n transactions that txn returns.
func (s *ThreadSafeStore[T]) transact(n int, txn func(i int) (KeyedTransaction[T], error)) error {
	return s.records.transact(n, func(i int) (recordWrite, error) {
		next, err := txn(i)
		return recordWrite{kind: next.Type, key: next.Key, item: next.Item, revision: next.Revision}, err
	})
}
