// Package queue holds the queues between what produces changes and what acts on
// them: of objects ([FIFO]), of what happened to each object ([DeltaFIFO]), of
// all that happened in order ([RealFIFO]), of what is least ([Heap]), and of
// work for many workers ([WorkQueue]).
//
//	                    key, transform              one at a time, unlocked
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
// RealFIFO tells deletions before the objects of the list; better still, without
// Known it tells the list as one delta, and the consumer compares. DeltaFIFO
// tells the objects first, then the deletions.
//
// # Concurrency properties
//
//   - Pop processes one thing at a time, but not under the queue's lock: a slow
//     consumer holds up no producer. What is being processed still counts as
//     known, so a Replace or Resync meanwhile neither misses it nor moves it
//     back in time.
//   - The user's functions run on the goroutine of the call that they are for,
//     Key and Transform before the lock is taken. If one fails or panics, the
//     call returns that and nothing has changed.
//   - Whatever blocks takes a context, and prefers what there is over the
//     context's end only if both come while it waits.
//   - No goroutine is started. Delays are calls of the queue's [Clock].
//   - Done is closed after the last of the first Replace was processed, also if
//     processing failed or panicked.
//
// # Closing
//
// After Close nothing more is taken in, and Pop returns what is queued, then
// [ErrClosed]. A WorkQueue is shut down at once or drained: see
// [WorkQueue.ShutDownWithDrain].
//
// # What is not here
//
// There is no requeue in Pop: it would put old state behind new, or wedge the
// queue; use a WorkQueue to retry. There is no ParallelizeUntil: an errgroup
// with SetLimit (golang.org/x/sync/errgroup) does that. A WorkQueue's order is
// first in, first out, without hooks to touch or reorder what is queued: items
// with priorities belong in a [Heap].
package queue
