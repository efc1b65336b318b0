// Package tree keeps the newest state of each object: in the order of their keys, and by the
// attributes that it indexes.
//
//	             Put, Delete, Load, Apply
//	one writer ───────────────────────────▶ Tree ◀──── From: a tree that goes on from a view
//	                                          │                        ▲
//	                                          │ View: O(1)             │
//	                                          ▼                        │
//	any reader                              View ──────────────────────┘
//	                                          ├─▶ Get, Len, All, Count   by key and prefix
//	                                          ├─▶ ByIndex                by the value of an attribute
//	                                          └─▶ Select                 by a filter, from the narrowest
//	                                                                     of these
//	two views ──▶ Diff ──▶ events that lead from one to the other
//
// A [Tree] belongs to one goroutine, or one actor. A [View] is immutable and safe for concurrent
// use. The watch cache, backends and package store/window, which rebuilds past states, share
// views: nothing copies a state.
package tree
