// Package replay implements the command watchmill replay: it replays a recorded history to
// many watchers with package load, and reports whether each of them saw all of it.
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
// Latency is the time from just before an object is stored until the watcher has it, for
// each event that was stored while the watcher was connected or connecting. It leaves out
// deletions, which have the previous state; events that a resumed watch reads later; and
// slow watchers, whose latency is intended. Of informers and object caches, which may leave out
// states, it is not measured.
//
// At full speed latency is mostly queueing, since the writer is faster than many watchers
// together. To measure the engine's own latency, give a speed that it can follow.
//
// # Continuing
//
// A replay into durable storage can be continued after an interrupt or a crash:
//
//	storage      every change that is not a no-op has one revision, so the storage's
//	             revision says after which line of the trace to continue
//	checkpoints  each watcher's resume point as [engine.Checkpoint] writes it, with its
//	             counts and a digest of what it has received
//
// The file of checkpoints is replaced as a whole, several times a second. It may be older
// than the storage, never newer. A watcher then receives again what it had received since.
//
// The state of a watcher is listed as of its checkpoint, and its digest continues. So at the end
// all that it has received since it last listed, in any process, is compared with all that was
// written. The events that it received before that list are compared at the end of the process
// that received them, unless that is killed.
package replay
