// Package clock is where everything in watchmill has its time from: the real
// time of package time, or a [Virtual] clock that a test or a simulation moves.
//
//	AfterFunc(d, f) ──▶ armed ──d has passed──▶ f
//	                      └──Stop──▶ forgotten
//
// No other package asks package time what time it is or arms a timer of its own,
// so that a run on a virtual clock is the same every time.
package clock
