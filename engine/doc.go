// Package engine is the in-process event engine: versioned objects of one type,
// a cache of them, and watches that see every change.
//
//	pods, err := engine.New(engine.Config[Pod]{Key: podKey, Labels: podLabels})
//	web, err := pods.Create(ctx, pod)
//	w, err := pods.Watch(ctx, engine.WatchOptions{Labels: "app=web", From: web.Revision})
//	for ev, err := range w.Events() { ... }
//
// # The way of one event
//
//	Create / Update / Delete / Emit
//	       ▼
//	backend ──batches──▶ Reflector ──▶ watchCache ──▶ dispatcher ──▶ watchers ──▶ Events, Batches, Chan, handler
//	       ▲                             │ publishes an immutable snapshot
//	Get Latest                           ▼
//	                           Get, List: no lock, no wait
//
// Reflector, watchCache, dispatcher and watchers are actors on a [Host], which
// several engines may share. An [Engine] wires them and holds no algorithm of
// theirs; each is described in its own package under actors.
//
// # Usage
//
// An [Engine] keeps state: Create, Get, List, Update, Delete, Watch. [Engine.Emit]
// sends events that are not state. A [Topic] is the plain bus, when there is no
// state at all.
//
// # Concurrency
//
// All methods of Engine, Host and Topic are safe for concurrent use. Objects
// and values handed out are shared and must not be changed; put the engine under
// [Config].DetectMutations in tests to prove that nobody does.
//
// # Order
//
// Every change has a [Revision]; a watch delivers them in that order, each once,
// and none is left out unless the watch says so: it ends with [ErrExpired], or
// an event is marked [Conflated]. After a write that returned revision R, a
// watch from R sees everything that happened after that write.
//
// # Slow consumers
//
// A slow consumer costs nobody else anything. See [Policy] for what happens to
// it.
//
// # Closing
//
// Close ends every watch with [ErrEngineClosed] and returns when nothing of the
// engine is left: no goroutine, no actor, no timer. A handler that does not
// return makes Close give up after [HostConfig].CloseTimeout, with an error that
// names what still runs. Package enginetest proves all that in your tests.
//
// # What of the Kubernetes watch cache does not apply
//
// Tests that hold down a behaviour of the original carry the number of its row
// in our map of the original's tests (Row001 and so on), and a test sees to it
// that no row is forgotten. These have no counterpart in a generic engine in one
// process, where parentheses name a part of a row whose rest is tested:
//
//   - 16 to 18, 22, 23, 34, 45, 46, 60: data that cannot be decrypted or decoded.
//     Values are Go values; nothing is decoded between backend and consumer.
//   - 35 (the average size), 82, 128: encodings, their size, and objects that
//     cache them. Nothing is encoded.
//   - 51, 84 (asking storage for progress), 129, 133 (beside compaction): etcd's
//     protocol. A backend here reports progress with every batch.
//   - 56, 61, 88: legacy combinations of request parameters. [Read] and
//     [WatchOptions] say each meaning by a name of its own.
//   - 62 (the gate that refuses instead): a list that the cache cannot serve in
//     time is always the backend's. Who wants no list from there asks for a
//     revision, with [NotOlderThan].
//   - 93 (its sharding), 94: sharded lists and watches.
//   - 105: the size of watchers' channels. A watch has a position, not a channel.
//   - 107 (the durations): a histogram of how long reads wait. [Stats] counts the
//     waits and measures none.
//   - 112: eager or lazy replay. The initial state is always read from an
//     immutable snapshot.
//   - 134 to 142: the server of watches over HTTP. A watch is handed out in the
//     process that asks for it.
//   - 149 to 151: bounds of the passes that serve stalled watchers. There are no
//     passes: each reads by itself, when its consumer asks.
//
// Where the original closes a watch without a word, ours gives the reason; where
// it ends all watches on a relist, ours survive it.
package engine
