// Package queue holds the queues between what produces changes and what acts on
// them: of objects ([FIFO]), of what happened to each object ([DeltaFIFO]), of
// all that happened in order ([RealFIFO]), of items by priority ([Heap]), and of
// work for many workers ([WorkQueue]).
//
//	                    key, transform              one at a time, without the lock
//	producer ─Add Update Delete─▶ FIFO / DeltaFIFO / RealFIFO ─Pop─▶ process
//	         ─Replace Resync────▶      │        ▲                      │
//	                                   │        └── KnownObjects ◀─────┘
//	                                   ▼            (its store)
//	                                 Done: the first Replace is processed
//
//	producer ─Add AddRateLimited─▶ WorkQueue ─Get─▶ worker ─Done─┐
//	             AddAfter │          ▲   ▲                       │ added meanwhile:
//	                      ▼          │   └───────────────────────┘ once more
//	                   delayed ─timer┘
//
// # Which one
//
//   - RealFIFO for a cache: the consumer passes through the states that the
//     source was in, in order, so its store is at one revision at any time.
//   - DeltaFIFO when only the order for each object matters and busy objects
//     should not delay others. Deltas of one object come together.
//   - FIFO when only the newest object of each key matters.
//   - WorkQueue for a controller: keys to look at, by several workers, with
//     retries.
//
// # Order of a Replace
//
// RealFIFO queues deletions before the objects of the list; without Known it queues
// the list as one delta, and the consumer compares. DeltaFIFO queues the objects
// first, then the deletions.
//
// # Concurrency properties
//
//   - Pop processes one thing at a time, but not under the queue's lock: a slow
//     consumer holds up no producer. What is being processed still counts as
//     known, so a Replace or Resync meanwhile neither misses it nor moves it
//     back in time.
//   - The user's functions run on the goroutine of the call that they are for,
//     Key and Transform before the lock is taken. If one fails or panics, the
//     call returns that and the queue is as it was.
//   - What blocks takes a context. If an entry and the context's end come while it
//     waits, it returns the entry.
//   - No goroutine is started. Delays are timers of the queue's clock.
//   - Done is closed after the last of the first Replace was processed, also if
//     processing failed or panicked.
//
// # Closing
//
// After Close nothing more can be added, and Pop returns what is queued, then
// [ErrClosed]. A WorkQueue is shut down at once or drained: see
// [WorkQueue.ShutDownWithDrain].
//
// # What is not here
//
// There is no requeue in Pop: it would put old state behind new, or block the
// queue; use a WorkQueue to retry. There is no ParallelizeUntil: an errgroup
// with SetLimit (golang.org/x/sync/errgroup) does that. A WorkQueue's order is
// first in, first out, without hooks to touch or reorder what is queued: items
// with priorities belong in a [Heap].
//
// # The classical pipeline
//
//	Reflector ─Replace Add Update Delete─▶ DeltaFIFO ─Pop─▶ Indexer
//
// Example_pipeline builds it. An informer (package engine/informer) does the same
// with one structure: its updater compares and applies in one turn, so it needs no
// queue in between.
package queue
