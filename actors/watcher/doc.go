// Package watcher is the cacheWatcher: one per Watch call. An idle watch uses no CPU.
//
// A watch has no queue. It has a cursor into shared data, which moves when the
// consumer reads. Only a watch with a handler is an actor:
//
//	watchCache ──publishes──▶ window (log of all changes) ◀── watches without a filter read here
//	     │                        ▲
//	     ▼                        │ scan: behind, or resuming
//	dispatcher ──evaluates────▶ Stream (one per filter)  ◀── the others read here once they have caught up
//	     │      each filter once
//	     │
//	     ├─ Wake (coalesced) ──▶ the actor's turn ──▶ handler(event)
//	     └─ signal ────────────▶ Next, Events, Batches, Pump, Take: the consumer reads through the cursor itself
//
// So a slow consumer only makes its cursor lag: it blocks nothing and keeps no
// events alive, since the cursor is a number. A watch that lags more than
// [Options].Buffer is stalled; its [Policy] says what happens then.
//
// # One path
//
// A cursor reads, in this order:
//
//   - the initial state, then the backlog: what has left the window, or a conflated difference;
//   - the window, from its position, through its filter;
//   - once it has caught up with the dispatcher, its filter's [Stream].
//
// If it falls behind, it leaves the stream and reads the window again. The position
// never goes back, so no event is delivered twice. None is left out, unless the watch
// ends with [ErrExpired] or marks events [store.Conflated] or [store.AfterGap].
//
// When the window moves on, a cursor skips events that are not for it: a watch of a
// quiet object does not expire because other objects change.
//
// # Concurrency
//
// The watch's own lock guards the cursor. It is held only while the cursor moves, for a reader over
// at most some thousand objects or events at a time, never while a handler runs. Lag and Info may
// look through the rest of the window under it. A watch has one consumer: a caller of Next, Events or
// Batches; the goroutine of Pump, which feeds the façade's Chan; a handler; or a caller of Take.
// Stop, Done, Err, Revision and Lag are safe for concurrent use.
//
// # Ends
//
// Every watch ends with exactly one reason, the first that applies: [ErrStopped],
// [ErrExpired], [ErrSlowConsumer], [ErrHandler], [ErrHandlerPanic], [ErrDeadline] or
// [ErrEngineClosed], or the reason of [Member.EndWhenCaughtUp], such as that storage has ended
// for good. Without a cache it can also be the error of the backend's watch.
// An expired watch delivers its backlog before the reason.
package watcher
