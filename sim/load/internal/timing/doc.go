// Package timing has the time of a load: real time, which the engine's clock shows with the jumps of faults.
//
//	real time ──▶ Stopwatch ──▶ when calls are due, and latencies
//	    │
//	    └───────▶ Clock ◀── jumps; the engine reads it
//
// # Concurrency
//
// All of it is safe for concurrent use.
package timing
