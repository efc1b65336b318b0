// Package reads has the reads of an engine in the form in which a server needs them: without the type of the
// objects, by the fields that are shown, and with a wait for revisions that storage has and the cache does not.
//
//	engine.Engine[T] ──▶ Engine ──▶ Get, List, Watch: *store.Object
//	                       │
//	          storage ──Over──────▶ WaitForRevision: served now, behind, or in the future
//
//	selector ──▶ Fields.Check ──▶ List, Watch
//
// # Concurrency
//
// All of it is safe for concurrent use, except that one goroutine at a time may call Next of a [Watch]. The
// package starts no goroutine.
package reads
