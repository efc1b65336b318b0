// Package bench measures watchmill beside systems that do the same work.
//
//	Contender ──Store──▶ workload: fan-out, burst, interest, reads, ... ──▶ Result
//	          ──Bus────▶ workload: publish and subscribe                ──▶ Result
//	             floor ▶ the unavoidable part of the same work, bare    ──▶ Result
//
// A [Workload] is written once, against the interfaces [Store] and [Bus]. A
// [Contender] is a system that implements them: [Watchmill] here, the rivals in
// the module bench/rivals, which keeps their dependencies out of this module.
// Package bench/compare runs the contenders in turn and writes the table; the
// command is bench/rivals.
//
// # How it is measured
//
// Throughput is always shown with latency and losses: a system that closes slow
// watchers is fast for the remaining ones.
//
// Latency is from when a write was due until the consumer has it, so that a
// writer delayed by the system does not hide latency (coordinated omission). If
// the writer only woke late, latency counts from when it woke, since that delay
// is the machine's, not the system's.
//
// Rates count from the first write until the last watcher has everything or has
// been closed. A watcher that the system closes is not opened again: its
// remaining events are lost.
package bench
