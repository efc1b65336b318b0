// Package judge decides whether what an engine showed is consistent with the history of
// its storage. It runs no engine: it compares what watches delivered and reads returned
// with that history. There are two ways, since a load of millions of events leaves neither
// the time nor the memory to check each event by itself:
//
//	                 one event at a time, exactly: package explore
//	writes as acknowledged ───────▶ History ──┐
//	events, claims, end of a watch ─▶ Record ──▶ Judge ──▶ nil, or a *Failure:
//	what a read or write returned ──▶ Read ────┘           which invariant, where, how
//	counters, actors, timers ───────▶ Figures, Left
//
//	                 many goroutines, in constant space: package load
//	writes, in any order ──▶ Ledger ──▶ Expect: for each selection, the revisions that its
//	                                    watches must see and the states between them ──┐
//	events, lists ─────────▶ Trail: stretches of revisions, as counts and sums ──▶ Judge ──▶ Verdict
//	pages of a read ───────▶ Listing: its order and its revision, and a sum ──────▶ Judge ──▶ nil, or a *Failure
//
// Every check belongs to an [Invariant], which the failure names. Nine are those that
// etcd's robustness tests check of a watch; the others are what an engine with
// bookmarks, policies and several kinds of reads guarantees in addition.
//
// The linearizability of calls that overlap is checked by the engine's tests.
//
// In a [History] every change has the next revision, starting after 1, which is that of
// empty storage. Changes that storage makes at one revision have one each here, and
// [History.Join] says that they are shown together.
//
// Only a [Ledger] is safe for concurrent use, by Note, Gap and Newest. Nothing in this
// package blocks, starts goroutines, reads a clock or depends on the order of a map.
package judge
