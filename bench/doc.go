// Package bench measures watchmill and other systems that do the same work.
//
//	Contender ──Store─────▶ workload: fan-out, burst, interest, reads, ... ──▶ Result
//	          ──Server────▶ workload: watches and lists over HTTP          ──▶ Result
//	          ──Informer──▶ workload: handlers of a copy of the objects    ──▶ Result
//	          ──Bus───────▶ workload: publish and subscribe                ──▶ Result
//	          ──Durable───▶ workload: writes that survive a power cut      ──▶ Result
//	              floor ──▶ the unavoidable part of the same work, bare    ──▶ Result
//
// A [Workload] is written once, against the interfaces [Store], [Server], [Informer],
// [Bus] and [Durable]. A [Contender] is a system that implements some of them: [Watchmill] is
// in this package, and the rivals are in the module bench/rivals, which keeps their
// dependencies out of this module. Package bench/compare runs the contenders in turn and
// writes the table; the command is bench/rivals.
//
// # How it is measured
//
// Throughput is always shown with latency and losses: a system that closes slow
// watchers is fast for the remaining ones.
//
// Latency is the time from when a write was due until the consumer has it, so that a
// writer delayed by the system does not hide latency (coordinated omission). If
// the writer only woke late, latency counts from when it woke, since the machine
// caused that delay, not the system.
//
// Rates count from the first write until the last watcher has all its events or has
// been closed. A watcher that the system closes is not opened again, and its
// remaining events count as lost.
package bench
