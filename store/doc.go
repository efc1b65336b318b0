// Package store has the model of what the engine stores: versioned objects, the events that
// change them, the filters that select them, and the errors about them. Everything below the
// typed façade handles these, and the packages in its folder keep them.
//
//	                    ┌▶ tree     the newest state of each object
//	Object ──┐          │
//	Event ───┼──────────┼▶ window   the recent events, and past states
//	Filter ──┘          │
//	                    ├▶ backend  the contract of storage, and its implementations
//	                    │
//	                    └▶ codec, snapshot   objects as bytes and as text
//
//	values of any type ──▶ cache    the client-side caches of client-go
//
// It has no actors or goroutines, and callers pass in the time.
//
// # Vocabulary
//
// An [Object] is a value of the user's type with its key, the [Revision] of
// the write that made it, and the labels and fields that selectors match.
// Objects are immutable once written; everything shares them by pointer.
//
// A [Schema] has the functions that make, copy, describe and compare the objects of one type.
//
// An [Event] is one change at one revision. It is four words, is passed by
// value, and points to the shared objects.
//
// A [Revision] orders all changes of one storage. Zero means "none". Revisions of
// two storages, or of one before and after it was restored, are of two timelines: see
// [Timeline].
//
// A [Filter] says which objects a reader wants, by key, prefix, labels and fields. It is
// compiled once from Kubernetes' selectors.
package store
