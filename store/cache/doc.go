// Package cache has client-side caches as client-go's package of that name has them: items
// of any Go type under keys that a function of the user returns, with indexes that other
// functions fill.
//
//	Store            finds items by key             ┐ the user's functions return keys,
//	Indexer          and by index                   ┘ revisions and values of indexes
//	ThreadSafeStore  the store below both, for callers that know the key already
//	ExpirationCache  a store whose items expire
//
//	Add, Update, Delete, Replace,       List, ByIndex, Index, GetByKey
//	Transaction                                   ▲
//	     │ Key, Transform, Revision               │ View: O(1), without a lock
//	     ▼                                        │ unless something was written
//	ThreadSafeStore: one writer at a time ──▶ items and indexes, copy-on-write
//
// All of them are safe for concurrent use. Readers see an immutable [View], so that a long
// list does not block writers; lists are in ascending order of keys.
//
// An engine does not need this package: its watch cache keeps objects in a tree of
// package store/tree, by keys and attributes that a schema describes once. An informer
// keeps what it has received in a ThreadSafeStore.
//
// # Differences from client-go's stores
//
//   - There is no UndeltaStore, which pushes its whole contents after each write:
//     an informer's Snapshot is the contents.
//   - There are no global metrics.
package cache
