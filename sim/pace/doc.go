// Package pace decides when a load makes its next call, and when a slow consumer
// takes its next event.
//
//	rate, shape, seed ──▶ Schedule ──Due──▶ time ──Sleep──▶ call
//	                      open loop: due times do not depend on how long calls take
//
//	scenario.Consume ───▶ Consumer ──Wait──▶ next event
//	                      closed loop: each event is taken after the one before
//
// Waiting takes real time, or the time of a testing/synctest bubble.
//
// # Concurrency
//
// A [Schedule] and a [Consumer] must not be used by several goroutines at once.
// [Sleep] is safe for concurrent use.
package pace
