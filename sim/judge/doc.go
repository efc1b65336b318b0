// Package judge decides whether what an engine showed can be true. It knows no
// engine at work: it has the history of one storage, as plainly as that can be
// said, and compares with it what watches delivered and reads returned.
//
//	writes as acknowledged ──▶ History ──┐
//	events, claims, end of a watch ──▶ Record ──▶ Judge ──▶ nil, or a *Failure:
//	what a read or write returned ───▶ Read ───┘            which invariant, where, how
//	figures, actors, timers ─────────▶ Figures, Left
//
// Every check belongs to an [Invariant], whose name the failure carries. Nine
// are those that etcd's robustness tests hold a watch to; the others are what an
// engine with bookmarks, policies and several kinds of read promises beyond.
//
// Two bring their cases here: package explore, from numbered seeds and with every
// fault there is, and the engine's own tests, from histories that rapid draws as
// it goes and so can aim. Both have one thing happen at a time. What goroutines
// see that write and read at once, the engine's tests hold to linearizability.
//
// Storage here gives every change the next revision, starting after 1, which is
// that of empty storage. Changes that storage makes at one revision have one each
// here, and [History.Join] says that they are shown together.
//
// Nothing in this package is safe for concurrent use; nothing in it starts
// goroutines, reads a clock or depends on the order of a map.
package judge
