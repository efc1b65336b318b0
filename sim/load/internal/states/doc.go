// Package states compares final states: that of a watcher with the backend's, and the
// backend's with that of the trace which was written.
//
//	lists, trails, indexers ──Of──▶ Objects ──Difference──────▶ the first difference,
//	trace.State ────────────────────────────TraceDifference──▶ in words; "" is none
package states
