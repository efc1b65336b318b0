// Package window keeps the recent changes of a cache or of storage, so that watches can
// start in the past and catch up, and rebuilds the states of the past from them.
//
//	             Append, AppendDiff, Advance
//	one writer ───────────────────────────▶ Window ◀── Trim, Compact: what exceeds the Limits
//	                                          │
//	                                          │ View: O(1), does not allocate
//	                                          ▼
//	any reader   a revision ──Seek──▶ a position (Seq) ──Read──▶ events, without a copy
//
//	tree.View ──┐
//	View ───────┴▶ Snapshot: State, Get          one revision of a cache
//	                  │  │
//	                  │  └─▶ StateAt, StateBefore  of the past: the state of now, from which
//	                  │                            events are undone
//	                  └────▶ Published ──▶ any reader, without waiting
//
// A [Window] belongs to one goroutine, or one actor. [View], [Snapshot] and [Published] are
// safe for concurrent use. The package has no goroutines and no clock: callers pass in the time.
package window
