// Package memory keeps versioned objects in memory: the backend for tests, for
// simulation, and for programs whose state lives and dies with the process.
//
//	                     ┌──────────────── lock ────────────────┐
//	Put, Remove, Emit ──▶│ next revision ─▶ Window (history)    │──▶ Notify those
//	      expiry alarm ─▶│               └▶ Tree (newest state) │    who wait
//	                     └───────┬──────────────────┬───────────┘
//	                         View, lazily         View
//	                             ▼                  ▼
//	                         Get, List         Watcher.Next
//
// A writer commits in its own goroutine, under a lock that is held for about a
// microsecond and never while code of the user's runs: the schema is asked
// before the lock is taken, and watchers are notified after it was released.
// Readers take immutable views. A view is made when somebody reads the first
// time after a write, and shared until the next write; so writes that nobody
// reads in between cost no copying.
//
// A watch is a position in the history. One that found nothing new joins the
// list of those who wait; the next commit takes that list and notifies each of
// them once. Both happen under the lock, so no wake-up is lost.
//
// # Revisions
//
// Empty storage is at revision 1, so that a watch from an empty list's revision
// misses nothing, and each write or emission takes the next number:
// [backend.Traits.Contiguous].
//
// # Time
//
// Time comes from [Options.Clock] alone, and there is no goroutine: objects
// with a TTL are deleted by one timer set to the earliest expiry, and one more
// gives up old history (see [Options.Retain]). With a virtual clock and one
// writer, the same calls give the same history, byte for byte.
package memory
