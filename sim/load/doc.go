// Package load runs a scenario on an engine in real time, with real goroutines, and
// reports what happened. It uses only the engine's public interface.
//
//	                    timeline of faults
//	                      │           │
//	writers ──▶ engine ◀──┼──────── watchers: batches, channels, queues, … ──▶ trails
//	readers ──▶   │       ▼           │ latency: commit, cache, dispatch,       │
//	caches,       │       │           │                                         │
//	informers     │       │           │                                         │
//	              └──▶ storage        │ handed over, end to end                 │
//	                      │ ledger    ▼                                         ▼
//	                      └──────▶ samples ──▶ report ◀──────────────────────judge
//
// These parts do not depend on a run:
//
//	content   makes the objects
//	storage   stores them and injects faults
//	pipeline  consumes by a queue
//	informers checks what informers tell
//	clients   consume a history by object caches and informers
//	breaks    are where consumers of a history disconnect
//	timing    has the load's time
//	latency   records latencies
//	sample    keeps some of the lists
//	states    compares final states
//	judge     compares what was received with what was written
//	pace      has the schedules
//
// [Replay] has the same clients watch a recorded history, as fast as they can or at
// its own pace, and compares their final states with the backend's. Over storage that
// lasts, one process can go on with the replay of another; see [Saved].
//
// # Open load
//
// Writers and readers keep to a schedule, whether the engine keeps up or not. An
// event's latency is counted from when its write was due, not from when it was made,
// so that it includes the time in which the engine delayed its own load. Calls that
// were due but not made before the end are counted.
//
// # Stages
//
// All are measured from outside:
//
//	end to end  from when the write was due until the consumer had the event
//	commit      from when the write was due until the call returned
//	cache       from just before storing until Engine.WaitForRevision had succeeded, or the load was
//	            over, for one write at a time: a sample
//	dispatch    from just before storing until a handler that watches everything on
//	            the engine's own workers was called
//	handed over from just before storing until the consumer had the event
//
// They overlap, and include the wake-up of the goroutine that measures.
//
// An event counts if it was stored after the watcher had begun to open its watch. So
// the time in which the engine opens a watch counts, and the age of events from before
// does not. Deletions do not count, since their objects have the times of the previous
// write, nor do events marked Conflated, which stand for several writes, and the objects of lists. A
// notification of an informer counts if a change is its cause, and not a list. Groups that the scenario
// makes slow count only in their own figures.
//
// # Lost events
//
// The ledger of the storage determines which revisions each selection must see. A
// watcher must have received all of them, in order, each once, from where it started
// to where it stopped; see [judge.Trail]. It may miss events in two cases:
//
//   - The engine says so, by the expiry of a watch and the list after it, or by events
//     marked Conflated or Synthetic.
//   - The engine itself did not receive them, because it listed instead, for whatever reason. The
//     metric engine-relists says how often.
//
// A state, from a list or at the start of a watch, must be that of its revision. An
// object that is missing in it is lost, since no event will deliver it. A watcher that
// conflates must have the newest state of every object at the end: each object of which
// it has another state is lost. The same holds for one that consumes by a queue, and for the first of
// each group, since the events marked Synthetic cannot be counted, but must lead to the newest state.
//
// A write that is acknowledged must have been stored: it returns an object of a new revision or, if it is
// one of a trace, which may change nothing, of the version that it was to write. Otherwise there would be
// no event to miss.
//
// Object caches and informers skip states by design. At the end each reference, and
// each handler, must have the newest state: those that do not are stale. The old object
// of an addition or update that a handler receives must be the one that it has.
//
// # Reads
//
// A list must be of a revision that its mode allows, with all of its pages. Up to a thousand lists of
// each group, of twenty of its selections, must be the state of their revision, in key order; see
// [judge.Listing]. Both are taken from the whole load, and the seed determines which selections.
// An object that is read must not be older than its last write, if that was the newest of all when the
// read began.
package load
