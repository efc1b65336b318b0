// Package judge decides whether what an engine showed can be true. It runs no
// engine: it has the history of one storage in its plainest form and compares with
// it what watches delivered and reads returned. There are two ways, since a check
// of every event does not fit into a load of millions:
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
//
// Every check belongs to an [Invariant], whose name the failure carries. Nine are
// those that etcd's robustness tests check of a watch; the others are what an
// engine with bookmarks, policies and several kinds of read promises beyond.
//
// The linearizability of calls that overlap is checked by the engine's tests.
//
// In a [History] storage gives every change the next revision, starting after 1,
// which is that of empty storage. Changes that storage makes at one revision have
// one each here, and [History.Join] says that they are shown together.
//
// Only a [Ledger] is safe for concurrent use. Nothing in this package starts
// goroutines, reads a clock or depends on the order of a map.
package judge
