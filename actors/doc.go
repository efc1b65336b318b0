// Package actors is the small runtime that all actors of the engine run on. It
// adds executors, bounded queues, wake-ups and a leak-free shutdown to
// protoactor-go, which provides the tree of actors, their lifecycle and
// supervision. No other package of the engine imports protoactor.
//
//	Ref.Offer, Tell, Ask     WakeBox.Wake, WakeAll      Stop, a failure,
//	        │                          │                the end of a child
//	        ▼                          │                        │
//	  inbox: queue of                  │                        ▼
//	  messages                         │                list of system messages
//	        │                          │                        │
//	        └──────────────┬───────────┴────────────────────────┘
//	                       ▼
//	    cell: one word of state; the change from idle to scheduled
//	    submits the actor to its executor, once
//	                       │
//	                       ▼
//	    Executor: Pool, Blocking or Seeded
//	                       │
//	                       ▼
//	    turn:  1. system messages: Started, ChildFailed, ChildStopped,
//	              Stopping, Stopped
//	           2. work: Receive for each message, then Flush; or Woken
//
// A turn handles a bounded number of messages. If some are left when it ends,
// the actor is submitted again, behind the others.
//
// # Usage
//
// A [System] is where actors live. [Spawn] starts an actor with a queue: a
// [Behavior], whose Receive gets messages of one type. Spawn returns a [Ref] to
// send them with. Offer never waits and returns Full if the queue is full; Tell
// ignores the capacity and is meant for the few control messages that must not
// be refused. Ask is a Tell whose sender waits for an answer: if the actor is idle, the
// sender runs its turn. All keep one order. A behavior with a Flush method can act once
// per batch.
//
// [SpawnWake] starts an actor that has a flag in place of a queue: a [Waker],
// which finds its work elsewhere, for example in a log that it reads at a cursor.
// Any number of wakes before its turn cause one turn. An idle one uses no
// goroutine, and no memory but its box, 88 bytes with 64 bits. It has no children.
// [WakeAll] wakes many, at about 100 ns each with the turn (BenchmarkWakeAll, two
// cores at 2.5 GHz).
//
// # Concurrency
//
// Turns of one actor never overlap, and each sees all effects of the one before,
// so a behavior needs no locks. Turns of different actors may overlap. Refs,
// boxes, clocks and systems may be used from any goroutine; a [Context] only in
// the call that it was passed to.
//
// A turn must return soon, unless the actor runs on [System.Blocking]. Nothing
// in this package waits for an actor except [System.Close].
//
// Messages from one sender to one actor arrive in the order sent. A stop, the
// failure of a child and the end of a child are handled before the messages in
// the queue.
//
// # Fairness
//
// Each actor spawned on the System begins a group, to which all actors below it
// belong: an engine is a group. On the pool the groups have turns one after the
// other, however many turns one of them has waiting. A group that has been idle
// waits for the end of one turn only, unless others that have been idle come in, too.
// An actor whose turn holds a worker of the pool for more than a second, by the clock
// of the system, is reported by name: see [ErrWorkerHeld].
//
// # Supervision
//
// A panic in user code, or a Goexit such as that of t.FailNow, ends neither
// the process nor a worker. The actor is suspended, and its parent decides
// what to do (see [Supervisor] and [Directive]). By default, and for actors
// spawned on the System, the actor is stopped. Every such [Failure] is logged
// and passed to SystemConfig.OnFailure, with its stack.
//
// An actor may fail again before its parent has decided, as when two of its children
// end. The parent is asked about the later failure once it has the actor resumed. If it
// has it restarted or stopped, that settles both.
//
// A parent stops after its children. [ChildObserver] is called once for each
// child that ends, whatever the reason. A message that was accepted is either
// received or, if the actor stops first, dropped (see [Dropper]). There are two
// exceptions, which are neither: the message during which the actor panicked, and
// the messages of an actor whose behavior could not be made.
//
// A panic or a Goexit while stopping or restarting is reported and changes nothing
// else. A supervisor that always restarts a child which fails in every Started
// keeps a worker busy for ever: give it a limit.
//
// There may be too many wake actors for protoactor to know each. So all those under one
// parent are one child of protoactor's, which stops them when it is stopped. The parent
// decides about their failures as about others.
//
// # Determinism
//
// With a [Seeded] executor in SystemConfig.Executor and a [clock.Virtual] in
// SystemConfig.Clock, everything runs on the goroutine that calls Seeded.Run
// and Virtual.Advance, in an order that the seed decides. IDs are given in
// order of spawning. The runtime then starts no goroutine, reads no other clock
// and ranges over no map.
//
// # Leaks
//
// An idle actor has no goroutine, so a leaked one does not show in a count of
// goroutines. [System.Actors] and [System.Timers] count actors and timers: both
// are 0 after a clean end. After Close has returned nil, every goroutine of the
// system has ended.
package actors
