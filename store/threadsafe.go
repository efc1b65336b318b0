package store

import (
	"iter"
	"sync"
	"sync/atomic"

	"github.com/tidwall/btree"
)

// ThreadSafeStore keeps items of type T under keys, with indexes. It is what a
// [Store] and an [Indexer] are built on, for callers that know the key already.
// The zero value is an empty store without indexes.
//
// It is safe for concurrent use. Writers take turns. The user's index functions
// run in a writer's turn but outside the lock that readers take, so they may
// read the store but not write it. If one fails, the write fails and changes
// nothing.
//
// Reads of many items use a [StoreView]: taking it costs constant time, reading
// it holds no lock. So a long List does not block writers; in exchange, the first
// writes after it copy the few tree nodes that they touch.
type ThreadSafeStore[T any] struct {
	writing   sync.Mutex   // one writer at a time; held while user functions run
	mu        sync.RWMutex // guards live; held for a few tree operations, never for user functions
	live      current[T]
	published atomic.Pointer[StoreView[T]] // a copy of live, or nil if live changed since
}

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
// [ThreadSafeStore.Update].
func (s *ThreadSafeStore[T]) Add(key string, item T, rev Revision) error {
	return s.Update(key, item, rev)
}

// Update stores item under key, replacing the previous one, if any. rev is the
// revision of the change, zero if it has none. The error is an [*IndexFuncError].
func (s *ThreadSafeStore[T]) Update(key string, item T, rev Revision) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	values, err := s.describe(key, item)
	if err != nil {
		return err
	}
	s.commit(func(live *current[T]) {
		live.put(key, item, values)
		live.reach(rev)
	})
	return nil
}

// Delete removes the item under key, if there is one. rev is the revision of
// the change, zero if it has none.
func (s *ThreadSafeStore[T]) Delete(key string, rev Revision) {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.commit(func(live *current[T]) {
		live.remove(key)
		live.reach(rev)
	})
}

// Replace makes items the only contents; of those with the same key the last
// counts. rev is the revision that they were listed at, zero if unknown. Readers
// see the old contents or the new. The error is an [*IndexFuncError].
//
// items is drained before the store is locked, so it may read the store.
func (s *ThreadSafeStore[T]) Replace(items iter.Seq2[string, T], rev Revision) error {
	var incoming btree.Map[string, T]
	for key, item := range items {
		incoming.Load(key, item)
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	next, err := s.rebuilt(&incoming)
	if err != nil {
		return err
	}
	next.reach(rev)
	s.commit(func(live *current[T]) { *live = *next })
	return nil
}

// Bookmark records that the store is complete up to rev. Zero is ignored.
func (s *ThreadSafeStore[T]) Bookmark(rev Revision) {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.commit(func(live *current[T]) { live.reach(rev) })
}

// AddIndexers adds indexes, over the items that are stored already too. Either
// all are added or none. The errors are [ErrIndexConflict] for a name that is
// taken, and [*IndexFuncError] for a function that is nil or fails.
func (s *ThreadSafeStore[T]) AddIndexers(indexers Indexers[T]) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	next, err := s.extended(indexers)
	if err != nil {
		return err
	}
	s.commit(func(live *current[T]) { *live = *next })
	return nil
}

// View returns the store as it is now, consistent and immutable.
func (s *ThreadSafeStore[T]) View() *StoreView[T] {
	if v := s.published.Load(); v != nil {
		return v
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := s.published.Load(); v != nil {
		return v
	}
	v := s.live.view()
	s.published.Store(v)
	return v
}

// Get returns the item under key and whether there is one.
func (s *ThreadSafeStore[T]) Get(key string) (item T, exists bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.live.get(key)
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

// Index is [StoreView.Index] of the store as it is now.
func (s *ThreadSafeStore[T]) Index(name string, item T) ([]T, error) {
	return s.View().Index(name, item)
}

// ByIndex is [StoreView.ByIndex] of the store as it is now.
func (s *ThreadSafeStore[T]) ByIndex(name, value string) ([]T, error) {
	return s.View().ByIndex(name, value)
}

// IndexKeys is [StoreView.IndexKeys] of the store as it is now.
func (s *ThreadSafeStore[T]) IndexKeys(name, value string) ([]string, error) {
	return s.View().IndexKeys(name, value)
}

// ListIndexFuncValues is [StoreView.ListIndexFuncValues] of the store as it is
// now.
func (s *ThreadSafeStore[T]) ListIndexFuncValues(name string) ([]string, error) {
	return s.View().ListIndexFuncValues(name)
}

// GetIndexers returns the index functions by name, in a map of the caller's
// own.
func (s *ThreadSafeStore[T]) GetIndexers() Indexers[T] { return s.View().GetIndexers() }

// LastRevision returns the revision of the last write or bookmark that had one.
func (s *ThreadSafeStore[T]) LastRevision() Revision {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.live.revision
}

// commit changes live. The caller holds writing.
func (s *ThreadSafeStore[T]) commit(change func(live *current[T])) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.live)
	s.published.Store(nil)
}

// describe computes the item's index values. The caller holds writing, so items and
// indexes do not change meanwhile.
func (s *ThreadSafeStore[T]) describe(key string, item T) ([][]string, error) {
	s.mu.RLock()
	had := s.live.valuesOf(key)
	s.mu.RUnlock()
	return describe(s.live.indexes, key, item, had)
}
