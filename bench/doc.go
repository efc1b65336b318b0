// Package bench measures watchmill and whatever else does its work.
//
//	Contender ──Store──▶ workload: fan-out, burst, interest, reads, ... ──▶ Result
//	          ──Bus────▶ workload: publish and subscribe                ──▶ Result
//	             floor ▶ the unavoidable part of the same work, bare    ──▶ Result
//
// A [Workload] is written once, against the interfaces [Store] and [Bus]. A
// [Contender] is a system that implements them: [Watchmill] here, the rivals in
// the module bench/rivals, so that nothing of theirs is a dependency of ours.
// Package bench/compare runs contenders in turns and writes the table; the
// command is bench/rivals.
//
// # How it is measured
//
// Throughput is never shown without latency, nor either without what was lost: a
// system that closes slow watchers is fast for those who are left.
//
// Latency is from when a write was due until the consumer has it. A writer that
// is held up by the system does not push later writes back: they count from when
// they were due (no coordinated omission). A writer that only woke late counts
// from when it woke, since that is the machine's doing, not the system's.
//
// Rates count from the first write until the last watcher has everything or has
// been closed. A watcher that the system closes is not opened again: what it
// would have got is lost.
package bench
