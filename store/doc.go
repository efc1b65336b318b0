// Package store has what everything else of the engine handles: versioned objects, the events
// that change them, the filters that select them, and the tree that keeps the newest of each.
//
//	           Put / Delete           View (O(1))
//	one writer ────────────▶ [Tree] ─────────────▶ [TreeView]: Get, All, ByIndex, by any reader
//
// # Vocabulary
//
// An [Object] is a value of the user's type with its key, the [Revision] of
// the write that made it, and the labels and fields that selectors match.
// Objects are immutable once written; everything shares them by pointer.
//
// An [Event] is one change at one revision. It is four words, is passed by
// value, and points to the shared objects.
//
// A [Revision] orders all changes of one storage. Zero means "none".
//
// # Concurrency
//
// A [Tree] belongs to one goroutine (or one actor). Its views are immutable and safe for
// concurrent use.
package store
