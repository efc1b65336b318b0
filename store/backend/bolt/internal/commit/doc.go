// Package commit lets writers share transactions.
//
//	writer ──▶ ┌ group ┐                                            ┌▶ Publish, in order
//	writer ──▶ │ ▪ ▪ ▪ │ ─▶ Read ─▶ Stage, in order ─▶ Append ───────┤
//	writer ──▶ └───────┘   at once   one may fail alone   one sync  └▶ or the error, to all
//	writer ──▶ ┌ next  ┐
//
// There is no goroutine for commits. A writer that finds no commit in progress commits
// for all waiting writers. Those that arrive meanwhile form the next group, and one of
// them commits that. So a single writer has the latency of the disk, and many writers
// share it.
//
// A write waits at most for the groups before its own, of which all that wait are full, and
// for its own, never for more writes to arrive. Only goroutines that are ready to run go
// first, a few times: they are often the writers that the commit before has woken.
//
// A write becomes visible after it is durable.
package commit
