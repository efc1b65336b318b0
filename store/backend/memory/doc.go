// Package memory keeps versioned objects in memory: the backend for tests, for
// simulation, and for programs whose state need not outlive the process.
//
//	                     ┌──────────────── lock ────────────────┐
//	Put, Remove, Emit ──▶│ next revision ─▶ Window (history)    │──▶ Notify the
//	      expiry alarm ─▶│               └▶ Tree (newest state) │    waiting
//	                     └───────┬──────────────────┬───────────┘
//	                         View, lazily         View
//	                             ▼                  ▼
//	                         Get, List         Watcher.Next
//
// A writer commits in its own goroutine, under a lock that is held for about a
// microsecond. The schema's functions are called before it is taken, and watchers are
// notified after it is released. Only what needs the revision runs under it: the clock,
// SetRevision, and Clone for a deletion. They must be quick and must not call the backend.
//
// Readers take immutable views. The first reader after a write makes a view, which
// is shared until the next write. So writes without reads in between copy nothing.
//
// A watch is a position in the history. One that found nothing new joins the list
// of waiting watches. The next commit takes that list and notifies each of them
// once. Both happen under the lock, so no wake-up is lost.
//
// # Revisions
//
// Empty storage is at [Options].FirstRevision, by default a number derived from the
// clock. So a revision of storage that is gone is older than all of its own, and is
// refused. It is never zero, so that a watch from an empty list's revision misses
// nothing. Each write or emission takes the next number: [backend.Traits.Contiguous].
//
// # Time
//
// Time comes from [Options.Clock] alone, and there is no goroutine: one timer, set to
// the earliest expiry, deletes objects with a TTL, and another trims old history (see
// [Options.Retain]). With a virtual clock and one writer, the same calls produce the
// same history, byte for byte. If the wall clock is set ahead, objects whose expiry
// has no monotonic reading, such as those of [Options.Objects], expire within a
// minute; the others keep the time that they had left.
package memory
