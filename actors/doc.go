// Package actors is the small runtime that every actor of the engine uses. It
// puts executors, bounded queues, wake-ups, clocks and a leak-free end around
// protoactor-go, which provides the tree of actors, their lifecycle and
// supervision. No other package of the engine knows of protoactor.
//
//	Offer, Tell ──▶ inbox ─┐                         ┌─▶ Receive … Flush
//	                       ├─▶ cell ──▶ Executor ──▶ turn
//	       Wake ───────────┘   (one word   (Pool,    │  └─▶ Woken
//	                            of state)  Blocking, │
//	Stop, failure, end of ──▶ system       Seeded)   └─▶ Started, Stopping, Stopped,
//	a child (protoactor)      messages                   ChildFailed, ChildStopped
//
// A cell is what every actor has: its state and its system messages. Whatever
// gives it something to do sets a bit in the state, and whoever sets the first
// one submits the cell to its executor. In a turn the system messages go first,
// then the work. What is left at the end of the turn is another turn, behind
// everybody else's.
//
// # Usage
//
// A [System] is where actors live. [Spawn] starts an actor with a queue: a
// [Behavior], whose Receive gets the messages of one type. The [Ref] that it
// returns takes them: Offer says Full when the queue is, and never waits; Tell
// is for the few control messages that must not be refused. Both keep one
// order. A behavior with a Flush method acts once per batch.
//
// [SpawnWake] starts an actor with nothing but a flag: a [Waker] that knows
// where its work is, in a log that it reads at a cursor, say. Any number of
// wakes are one turn. Idle, it costs no goroutine, and about 510 bytes where
// there are 100,000 of them. [WakeAll] wakes many at about 100 ns each, turn
// included (BenchmarkWakeAll, 2 cores at 2.5 GHz with nothing else to do).
//
// # Concurrency
//
// Turns of one actor never overlap, and each sees all that the one before has
// done, so a behavior needs no locks. Turns of different actors overlap as the
// executor pleases. Refs, boxes, clocks and systems may be used from any
// goroutine; a [Context] only in the call that it was passed to.
//
// Everything in a turn must return soon, unless the actor runs on
// [System.Blocking]. Nothing here waits for an actor except [System.Close].
//
// From one sender to one actor, messages arrive in the order sent. A stop, the
// failure of a child and its end overtake what is in the queue.
//
// # Supervision
//
// A panic in user code, and a Goexit as by t.FailNow, ends neither the process
// nor a worker: the actor is suspended and its parent asked what to do (see
// [Supervisor] and [Directive]). By default, and for actors spawned on the
// System, that is to stop it. Every such [Failure] is logged and reported to
// SystemConfig.OnFailure, with its stack.
//
// A parent stops after its children. [ChildObserver] hears of the end of each,
// whatever the reason, once. A message that was accepted is either received or,
// if the actor stops first, dropped, for which there is [Dropper]; only the one
// during which the actor panicked is neither.
//
// A panic while stopping or restarting changes nothing but that it is reported.
// A supervisor that restarts without a limit what fails in every Started keeps
// a worker busy for ever: the limit is its to set. A Goexit in Stopping,
// Stopped or ChildStopped cannot be contained: the actor does not end, and
// Close says so.
//
// # Determinism
//
// With SystemConfig.Executor a [Seeded] executor and SystemConfig.Clock a
// [VirtualClock], everything runs on the goroutine that calls Seeded.Run and
// VirtualClock.Advance, in an order that the seed decides. IDs are given in
// order of spawning. The runtime starts no goroutine then, reads no other
// clock, and ranges over no map.
//
// # Leaks
//
// An actor that nobody stops has no goroutine, so no count of goroutines shows
// it. [System.Actors] and [System.Timers] do: both are 0 after a clean end.
// After Close returned nil, every goroutine of the system has ended.
package actors
