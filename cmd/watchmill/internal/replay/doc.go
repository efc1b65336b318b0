// Package replay is the command watchmill replay: it replays a recorded history to many
// watchers with package load, and reports whether each of them saw all of it.
//
//	Options ──▶ trace ──▶ load.Replay ──▶ Report ──▶ text, and the final state
//
// # What is checked
//
// At the end four states are compared by object and revision: the trace's, the backend's,
// the engine's (cached and linearizable), and every watcher's. Each event must also fit
// the state of its watcher, so a lost or repeated event is found even if a later one
// hides it.
//
// # What is measured
//
// Latency is from the commit of an object until the watcher has it, for each event that was
// committed while the watcher wanted to watch. Left out are deletions, which have the
// previous state, events that a resumed watch reads later, and slow watchers, whose
// latency is intended. At full speed it is mostly queueing, since the writer is faster
// than many watchers together; to measure the engine's own latency, give a speed that
// it can follow.
//
// # Time
//
// Tests run in testing/synctest bubbles.
package replay
