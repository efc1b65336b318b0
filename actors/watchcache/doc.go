// Package watchcache is the actor that alone writes the cache: the state tree
// with its indexes, the sliding window, the revision, and who waits for which.
//
//	Reflector ──Upstream: Replace | Changes | Progress | Unavailable──▶ watchCache
//	Watch callers ──Register──▶                                          │ applies the whole queue,
//	readers ──Wait──▶                                                    │ then publishes once
//	                                                                     ├─▶ Published snapshot ──▶ Get, List: no lock, no wait
//	                                                                     ├─▶ waiters whose revision has come
//	                                                                     └─▶ dispatcher: Committed, Register (one FIFO)
//
// After each batch the cache publishes an immutable [store.Snapshot]. Readers
// load one pointer; they never wait for the writer, nor the writer for them.
//
// # Registration by order
//
// A watch's start is fixed here, between two batches, and passed on to the
// dispatcher behind what was committed before it. So the watch sees each event
// after its position once.
//
// # A list that replaces
//
// When the Reflector has to list again, the new state is compared with the old
// one and the difference goes through the window as events. Watches live
// through it. Revisions strictly between the two states cannot be resumed
// from, since what happened there is not known.
//
// Only if nothing can lead from one to the other, because storage went back in
// time or what was shown at a revision was never so, a new epoch begins: all
// watches then end as expired.
//
// # Readiness
//
// The cache is Pending until its first list, while its source is lost, and from
// when it failed or its state is found to be wrong until it is listed; Ready
// otherwise, and Stopped in the end. Every Pending→Ready is a new generation. While Pending,
// new watches are refused with a [*NotReadyError] that says when to try again;
// those that exist stay. What was published stays readable: whether to read it
// is the reader's decision.
//
// # Failure
//
// If the actor fails, a new one starts from the last published snapshot, which
// is always whole, and has the Reflector list again; what comes before that
// list is not applied. Who waits for a revision goes on waiting. The Reflector
// spaces its lists, so an actor that fails at every list fails at their pace.
package watchcache
