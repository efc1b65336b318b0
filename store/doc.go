// Package store holds what the engine remembers: versioned objects, the tree
// that keeps the newest of each, the window that keeps the recent changes, and
// the keyed, indexed caches that clients mirror them into.
//
// It knows nothing of actors or goroutines, and time is what callers say it is.
// What the engine is made of is plain data that one writer changes and any number
// of readers see through immutable views.
//
//	           Put / Delete                    Append
//	one writer ────────────▶ Tree    one writer ──────▶ Window
//	                          │ View (O(1))              │ View (O(1))
//	                          ▼                          ▼
//	any reader          TreeView: Get, All,        WindowView: Seek, Read,
//	                    ByIndex, Diff              StateAt
//
//	any goroutine ──▶ Store / Indexer / ThreadSafeStore   (client-side caches)
//
// # Vocabulary
//
// An [Object] is a value of the user's type with its key, the [Revision] of
// the write that made it, and the labels and fields that selectors look at.
// Objects are immutable once written; everything shares them by pointer.
//
// An [Event] is one change at one revision. It is four words, is passed by
// value, and points to the shared objects.
//
// A [Revision] orders all changes of one storage. Zero means "none".
//
// # Concurrency
//
// [Tree] and [Window] belong to one goroutine (or one actor). What they
// publish, [TreeView] and [WindowView], is immutable and safe for everybody,
// for ever. [ThreadSafeStore], [Indexer] and [Store] lock for themselves.
//
// # What of client-go's stores does not apply
//
// Tests of the client-side caches carry the number of their row in our map of the
// original's tests (ClientRow001 and so on). These have no counterpart:
//
//   - 4: a store that pushes its whole contents after each write. An informer's
//     Snapshot is the contents.
//   - 8: metrics of a global registry. Nothing here is global.
package store
