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
// # Going on
//
// A replay into storage that lasts can be gone on with after an interrupt, or a crash:
//
//	storage      every change that makes a difference is one revision, so its revision
//	             tells after which line of the trace to go on
//	checkpoints  each watcher's resume point as [engine.Checkpoint] writes it, with its
//	             counts and a digest of what it has received
//
// The checkpoints are replaced whole, several times a second. They may be older than the
// storage, never newer: a watcher receives again what it had received since. Its state
// is listed as it was at its checkpoint, and the digest goes on, so that at the end all
// that it has received, in any process, is compared with all that was written.
//
// # Time
//
// Tests run in testing/synctest bubbles.
package replay
