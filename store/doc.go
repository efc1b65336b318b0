// Package store has the engine's data structures: versioned objects, the tree
// that keeps the newest of each, and the window that keeps the recent changes.
//
// It has no actors or goroutines, and callers pass in the time. Each structure is
// plain data that one writer changes and any number of readers see through
// immutable views.
//
//	           Put / Delete                    Append
//	one writer ────────────▶ Tree    one writer ──────▶ Window
//	                          │ View (O(1))              │ View (O(1))
//	                          ▼                          ▼
//	any reader          TreeView: Get, All,        WindowView: Seek, Read
//	                    ByIndex
//	                          │                          │
//	                          └──────────┬───────────────┘
//	                                     ▼
//	                          Snapshot: State, Get, StateAt
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
// [Tree] and [Window] belong to one goroutine (or one actor). Their views,
// [TreeView] and [WindowView], are immutable and safe for concurrent use.
package store
