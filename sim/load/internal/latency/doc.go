// Package latency records latencies and summarizes them.
//
//	many goroutines ──Record──▶ Recorder: shards ──Drain──▶ its total, other totals ──Stage──▶ report
//
// Latencies are recorded in nanoseconds and reported with a precision of one percent
// or a microsecond. Those above an hour count as an hour.
package latency
