// Package load puts a scenario on an engine in real time, with real goroutines,
// and reports what happened. It uses nothing of the engine that users do not
// have.
//
//	                    timeline of faults
//	                      │           │
//	writers ──▶ engine ◀──┼──────── watchers: batches, channels, queues, … ──▶ trails
//	readers ──▶   │       ▼           │ latency: commit, cache, dispatch,       │
//	caches,       │       │           │                                         │
//	informers     │       │           │                                         │
//	              └──▶ storage        │ handed over, end to end                 │
//	                      │ ledger    ▼                                         ▼
//	                      └──────▶ samples ──▶ report ◀──────────────────── judgement
//
// The parts underneath know nothing of a run: content makes what is written,
// storage keeps it and goes wrong when told to, latency records, judge compares
// what was seen with what was written. Package pace keeps the time.
//
// [Replay] has the same parts see a recorded history, as fast as they can or at its
// own pace, and compares what each has come to with what there is.
//
// # Open load
//
// Writers and readers keep to a schedule, whether the engine keeps up or not. An
// event's latency is counted from when its write was due, not from when it was
// made, so that time in which the engine held up its own load is not left out.
// Calls that were due and could not be made before the end are counted.
//
// # What the stages are
//
// Each is measured from outside, by what a user can see:
//
//	end to end  from when the write was due until the consumer had the event
//	commit      from when the write was due until the call returned
//	cache       from just before storing until Engine.WaitFor returned, for
//	            one write at a time: a sample
//	dispatch    from just before storing until a handler of ours, which watches
//	            everything on the engine's own workers, was called
//	handed over from just before storing until the consumer had the event
//
// They overlap, and include the wake-up of the goroutine that
// measures. Only events that were stored while a watcher wanted to watch count,
// from when it first tried to, or from when it was back after having left: what it
// reads of the past is as old as it is. Time in which a watch was being opened, or
// opened again after it had ended, is the engine's. Deletions do not count, since
// what they carry is the state before, and its times. Consumers that the scenario slows down count
// for their own group alone.
//
// # Lost events
//
// The storage's ledger says which revisions each selection had to see. A watcher
// must have seen all of them, in order, each once, from where it started to
// where it stopped: its trail is a number and a sum of revisions, compared in
// the end. Excepted is what it was told of: a watch that expired and was listed
// anew, events marked Conflated or Synthetic, and what the engine itself could
// not see since its storage had forgotten it. A state that it was given, to start
// with or as a list, must be that of its revision: an object that is missing there
// is lost, too, for no event will tell of it. A watcher that conflates and has read
// everything must have the newest state of every object: each that it has not is
// lost.
//
// Object caches and informers skip states by design. Of them it is demanded that
// in the end each reference, and each handler, has the newest state: those that
// have not are stale. What a handler is told must join up: old is what it knew.
package load
