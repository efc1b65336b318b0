// Package clients has the watchers of a history that have no watch of their own: they see its objects by
// references into shared object caches, or as handlers of shared informers.
//
//	               ┌──▶ object caches ──▶ reference readers: rounds of reads ┐
//	engine of the ─┤                                                         ├──▶ Outcome
//	history        └──▶ informers ──────▶ handlers: notifications ───────────┘
//
// A client disconnects at random points of the history, as other watchers do: it releases its references, or
// removes its handler, and begins anew.
//
// # Concurrency
//
// A [Client] consumes in one goroutine; its [Outcome] says what may be read meanwhile.
package clients
