// Package convert shows the objects of storage in another form than storage has them: for
// example by the present schema of their kind, and not by that of the time when they were
// stored.
//
//	writes ──ToStorage──▶ ┌─────────┐ ──▶ the storage's form
//	reads  ◀─────────────── [Backend] ◀── FromStorage, of each object that storage lists,
//	events ◀───────────── └─────────┘ ◀── returns or reports
//
// A cache above converts each state of an object once, when it learns of it, and never for its
// readers; a read of storage itself returns the cache's object, unless it has an older state. An
// object that has the right form already is passed on as it is. As long as all of them have, a cache
// shares the state of storage in memory; after the first that does not, it applies the events
// itself.
//
// # Concurrency
//
// A [Backend] is safe for concurrent use. The package starts no goroutine.
package convert
