// Package queue has the queues between producers and consumers of changes.
//
//	                    key, transform              one at a time, without the lock
//	producer ─Add Update Delete─▶ FIFO / DeltaFIFO / RealFIFO ─Pop─▶ process
//	         ─Replace Resync────▶      │        ▲                      │
//	                                   │        └── KnownObjects ◀─────┘
//	                                   ▼            (the consumer's store)
//	                                 Done: the first Replace is processed
//
//	producer ─Add AddRateLimited─▶ WorkQueue ─Get─▶ worker ─Done─┐
//	             AddAfter │          ▲   ▲                       │ added meanwhile:
//	                      ▼          │   └───────────────────────┘ once more
//	                   delayed ─timer┘
//
// # Which queue to use
//
//   - [RealFIFO] for a cache: the consumer has the states of the source in order, so
//     its store is at one revision at any time.
//   - [DeltaFIFO] when only the order of each object's changes matters, and objects
//     that change often must not delay others. The deltas of one object come
//     together.
//   - [FIFO] when only the newest object of each key matters.
//   - [WorkQueue] for a controller: several workers process keys, with retries.
//   - [Heap] for items with priorities.
//
// # Order of a Replace
//
// RealFIFO queues deletions before the objects of the list; without Known it queues
// the list as one delta, which the consumer compares with its store. DeltaFIFO queues
// the objects first, then the deletions.
//
// # Concurrency properties
//
//   - Pop processes one entry at a time, without the queue's lock, so a slow consumer
//     does not block producers. An entry that is being processed counts as known: a
//     Replace or Resync meanwhile neither misses it nor queues an older state.
//   - The user's functions run on the goroutine of the call that needs them; Key and
//     Transform run before the lock is taken. If one fails or panics, the call
//     returns the error and the queue does not change. Only a panic of a Heap's Less
//     leaves the change made, as far as it came: see [HeapConfig].
//   - Calls that block take a context. If an entry comes and the context ends while a
//     call waits, it returns the entry.
//   - The queues start no goroutines. Delays are timers of the queue's clock.
//   - Done is closed after the last entry of the first Replace was processed, even if
//     processing failed or panicked.
//
// # Closing
//
// After Close nothing can be added; Pop returns the entries that are left, then
// [ErrClosed]. A WorkQueue is shut down at once or drained: see
// [WorkQueue.ShutDownWithDrain].
//
// # Differences from client-go
//
//   - Pop cannot requeue an entry: that would put an old state behind a new one, or block
//     the queue. Use a WorkQueue to retry.
//   - A WorkQueue is first in, first out, without hooks to reorder it. Use a Heap for items
//     with priorities.
//   - ShutDownWithDrain has the delayed items processed, too: at once, unless the
//     [DrainPolicy] says otherwise.
//   - An addition to a WorkQueue that was shut down returns an error. In client-go it is
//     ignored.
//   - Done is ignored for an item that no worker has. In client-go it may queue the item
//     twice.
//   - A FIFO whose first list was replaced before it was processed syncs with the second list. A FIFO
//     of client-go then waits for as many entries as the first had.
//   - There is no ParallelizeUntil: an errgroup with SetLimit (golang.org/x/sync/errgroup)
//     does that.
//
// # The classical pipeline
//
//	Reflector ─Replace Add Update Delete─▶ DeltaFIFO ─Pop─▶ Indexer
//
// Example_pipeline builds it. An informer (package engine/informer) does the same
// with one structure: its updater compares and applies in one turn, so it needs no
// queue in between.
package queue
