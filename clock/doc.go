// Package clock is the source of time for all of watchmill: the real time of
// package time, or a [Virtual] clock that a test or a simulation advances.
//
//	AfterFunc(d, f) ──▶ armed ──d has passed──▶ f
//	                      └──Stop──▶ cancelled
//
// No other package reads the time or arms a timer by package time, so that a run
// on a virtual clock is deterministic.
package clock
