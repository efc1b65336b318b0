// Package watcher is the cacheWatcher: one per Watch call, an actor that costs
// nothing while nothing happens.
//
// A watcher has no queue. It has a cursor into what everybody shares, and it
// moves when somebody consumes:
//
//	watchCache ──publishes──▶ window (log of all changes) ◀── Everything watchers read here
//	     │                        ▲
//	     ▼                        │ scan: behind, or resuming
//	dispatcher ──evaluates────▶ Stream (one per filter)  ◀── the others read here while they keep up
//	     │      each filter once
//	     │ Wake (any number collapse)
//	     ▼
//	watcher's turn ──▶ handler(event)
//	             └───▶ ready signal ──▶ Next / Events / Batches / Chan: the consumer reads through the cursor itself
//
// So backpressure is the cursor's lag: a consumer that stops reading holds up
// nobody and pins nothing, because the cursor is a number. How far it may lag
// before the dispatcher calls it stalled is [Options].Buffer; what happens
// then is its [Policy].
//
// # One path
//
// A cursor reads a prelude first (the initial state, or a conflated
// difference, or the backlog of an ending watch), then the window from its
// position through its filter, then, once it has caught up with the
// dispatcher, its filter's [Stream]. Falling behind leads back from the stream
// to the window. Position never goes back; no event before it is ever delivered
// again; none behind it is left out unless the watch says so, by ending with
// [ErrExpired] or by events marked [store.Conflated]. When the window moves on,
// a cursor passes by what is not for it: a watch of a quiet object does not
// expire because others are busy.
//
// # Concurrency
//
// The cursor is guarded by the watch's own lock, held only while it moves and
// never while a handler runs or a consumer thinks. A watch has one consumer:
// Next, Events, Batches, Chan and Handle exclude each other. Stop, Done, Err,
// Revision and Lag may be called from anywhere.
//
// # Ends
//
// Every watch ends with exactly one reason: [ErrStopped], [ErrExpired],
// [ErrSlowConsumer], [ErrHandlerPanic], [ErrDeadline] or [ErrEngineClosed].
// The first to be set wins; an expired watch hands out its backlog before it
// tells.
package watcher
