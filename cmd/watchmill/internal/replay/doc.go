// Package replay is watchmill replay: it has package load replay a recorded
// history in front of many watchers, and says whether each of them saw all of it.
//
//	Options ──▶ trace ──▶ load.Replay ──▶ Report ──▶ text, and the final state
//
// # What is checked
//
// At the end four states are compared: the trace's own, the backend's, the
// engine's (cached and linearizable), and every watcher's, object by object and
// revision by revision. On the way each event must fit what its watcher has seen,
// so a lost or repeated event is found even if a later one covers it up.
//
// # What is measured
//
// Latency is from an object's commit to the moment when the watcher has it in
// hand, of each event but deletions, which carry the state before, that was
// committed while the watcher wanted to watch. Events
// that are replayed to a watch which comes back are left out, and so are the slow
// watchers: their latency is the one that they were told to have. As fast as
// possible, latency is mostly the time that events wait because the writer is
// faster than so many watchers together; to measure the engine's own, give a
// speed that it can follow.
//
// # Time
//
// Tests run in bubbles of testing/synctest.
package replay
