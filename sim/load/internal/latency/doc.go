// Package latency records how long things took, and sums it up.
//
//	many goroutines ──Record──▶ Recorder: shards ──Drain──▶ its total, and others' ──Stage──▶ report
//
// Latencies are in nanoseconds when recorded, exact to one percent or a
// microsecond when reported; all above an hour are one hour.
package latency
