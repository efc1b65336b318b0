// Package commit lets writers share transactions.
//
//	writer ──▶ ┌ group ┐                                  ┌▶ Publish, in order
//	writer ──▶ │ ▪ ▪ ▪ │ ─▶ Stage, in order ─▶ Append ────┤
//	writer ──▶ └───────┘    one may fail alone  one sync  └▶ or the error, to all
//	writer ──▶ ┌ next  ┐
//
// There is no goroutine that commits. A writer that finds no commit in progress commits
// for all waiting writers; those that arrive meanwhile form the next group, and one
// of them commits that. Nothing waits for more to come: a write waits for the
// group before its own, at most, and for its own. So one writer alone has the
// latency of the disk, and many share it.
//
// What a write shows to others it shows after it is durable.
package commit
