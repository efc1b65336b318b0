// Package pace keeps time for those who put load on something: when a call is
// due, and when a consumer may take its next event.
//
//	rate, shape, seed ──▶ Schedule ──Due──▶ moment ──Sleep──▶ call
//	                      open: however long calls take, the next is due when it is
//
//	scenario.Consume ───▶ Consumer ──Wait──▶ next event
//	                      closed: each event is taken after the one before
//
// It waits in real time, or in that of a testing/synctest bubble.
//
// # Concurrency
//
// A Schedule and a Consumer belong to one goroutine each. Sleep can be called
// from anywhere.
package pace
