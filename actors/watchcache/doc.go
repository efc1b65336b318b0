// Package watchcache is the actor that alone writes the cache: the state tree
// with its indexes, the sliding window of events, the revision, and the waiters
// for revisions.
//
//	Reflector ──Replace | Changes | Progress | Unavailable──▶ watchCache
//	Watch callers ──Register──▶ (unless what is published suffices)      │ applies the whole queue,
//	readers ──Wait──▶  engine ──Distrust, Compact──▶                     │ then publishes once
//	                                                                     ├─▶ Published snapshot ──▶ Get, List: no lock, no wait
//	                                                                     ├─▶ waiters whose revision has come
//	                                                                     └─▶ dispatcher: Committed, Register (one FIFO)
//
// After each batch the cache publishes an immutable [window.Snapshot]. Readers
// load one pointer; they never wait for the writer, nor the writer for them.
//
// # Registration by order
//
// A watch starts at a position of a published snapshot, which the dispatcher
// dispatches before it takes the watch in. So the watch sees each event after its
// start exactly once. Usually the newest snapshot has the position: then the caller of
// [Cache.Register] passes the watch on without a turn of the cache. Otherwise it waits
// for a turn.
//
// # Relists
//
// After a relist the cache compares the new state with the old one and appends
// the difference to the window as events, so that watches continue. Watches
// cannot resume from revisions strictly between the two states, since the
// changes there are unknown.
//
// If the old state was found to be wrong, those before it may have been, too: watches cannot
// resume from before the list, though those that run continue.
//
// If no events can lead from one to the other, because storage went back in time
// or the old state was wrong at its revision, a new epoch begins: all watches
// end as expired.
//
// # Readiness
//
// The cache is in one of these states:
//
//   - Pending: until its first list, while its source is unavailable, and from a failure
//     or a wrong state until the next list. New watches are refused with a
//     [*NotReadyError] that says when to retry.
//   - Ready. Each change from Pending to Ready begins a new generation.
//   - Ended: its source has ended for good. New watches are refused with a
//     NotReadyError that is Final, with which others end when they have what there is.
//   - Stopped, at the end.
//
// While it is Pending, existing watches stay. While it is Pending or Ended, the published
// snapshot can still be read.
//
// # Failure
//
// If the actor fails, a new one starts from the last published snapshot, which
// is always consistent, and requests a relist. Updates before that list are
// dropped. Waiters for a revision keep waiting. The Reflector's backoff spaces
// the lists, and so also the failures of an actor that fails at every list.
package watchcache
