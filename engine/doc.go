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
// # Kubernetes
//
// The file docs/parity.md says of each behaviour of the Kubernetes watch cache
// which test holds it here, or why it does not apply to Go values in one process.
// Where the original closes a watch without a word, an engine gives the reason;
// where it ends all watches to list storage again, they live through that here.
package engine
