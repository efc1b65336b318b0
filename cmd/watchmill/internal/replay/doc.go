// Package replay runs a recorded history through an engine, in front of many
// watchers, and checks that each of them saw all of it.
//
//	trace ──▶ load ──▶ writer ──Put / Delete──▶ Engine[File] ──▶ consumer 0 ──▶ state 0 ─┐
//	            │        │ paced: Options.Speed       │      ──▶ consumer 1 ──▶ state 1 ─┤
//	            │        ▼                            │          … one goroutine each     ├─▶ compare ──▶ Report
//	            │   last revision ──"written"──▶ each consumer reads up to it, and stops ┘      ▲
//	            └──────────── the state that the trace leads to, without an engine ─────────────┘
//
// A consumer knows nothing of the others and nothing of the trace. It keeps the
// state that its watch's events add up to. It may be slow, it may break its
// watch off at random points and resume it, and if it cannot resume it lists
// again: what any client of a list-watch does. With [ViaObjectCache] it is a
// holder instead: it has a reference to each object in an object cache over the
// engine, reads them again and again, and sees the newest state of each. With
// [ViaInformer] it is a listener: a handler of a shared informer, which is removed
// and added again at its breaks.
//
// # What is checked
//
// At the end four states are compared: the trace's own, the backend's, the
// engine's (cached and linearizable), and every consumer's, object by object and
// revision by revision. On the way each consumer checks that every event fits
// the state that it has, so a lost or repeated event is found even if a later
// one covers it up.
//
// # What is measured
//
// Latency is from an object's commit to the moment when the consumer has it in
// hand, of each event that was committed while the watch was open. Events that
// are replayed to a watch which comes back are left out, and so are the slow
// consumers: their latency is the one that they were told to have. As fast as
// possible, latency is mostly the time that events wait because the writer is
// faster than so many consumers together; to measure the engine's own, give a
// speed that it can follow.
//
// # Time
//
// This is a program's code, outside the engine: it uses goroutines and the
// clock of package time. Its tests run in bubbles of testing/synctest.
package replay
