// Package engine is the in-process event engine: versioned objects of one type,
// a cache of them, and watches that see every change.
//
//	pods, err := engine.New(engine.Config[Pod]{Key: podKey, Labels: podLabels})
//	web, err := pods.Create(ctx, pod)
//	w, err := pods.Watch(ctx, engine.WatchOptions{Labels: "app=web", From: web.Revision})
//	for ev, err := range w.Events() { ... }
//	err = pods.Close()
//
// An [Engine] keeps state: Create, Get, List, Update, Delete, Watch. Its [Engine.Emit]
// sends events that are not state. A [Topic] is an event bus without state.
//
// # Data flow
//
//	Create / Update / Delete / Emit
//	       ▼
//	backend ──batches──▶ Reflector ──▶ watchCache ──▶ dispatcher ──▶ watchers ──▶ Events, Batches, Chan, handler
//	       ▲                             │ publishes an immutable snapshot
//	Get Latest                           ▼
//	                           Get, List: no lock, no wait
//
// The Reflector, the watchCache and the dispatcher are actors on a [Host], which several
// engines may share. So is each watch with a handler. Other watches are cursors, which
// their consumers move. Each kind of actor has its own package under actors.
//
// # Order
//
// Every change has a [Revision]. A watch delivers changes in that order, each once. If
// it leaves one out, it ends with [ErrExpired], or an event is marked [Conflated] or
// [AfterGap]. After a write has returned revision R, a watch from R sees every change
// after that write.
//
// The exception is a relist: if storage no longer has the changes that the cache needs
// next, the cache lists the state again. What it finds by comparison is marked [Synthetic];
// states in between are not found, and an object that came and went in between leaves no
// event and no mark. [Stats].Relists counts relists.
//
// # Storage that is restored
//
// Storage may be restored from a copy, or replaced, while an engine runs: see [Timeline]. When the
// cache notices, it lists, and all watches end with [ErrExpired]. Until then a write, and a Get that
// is [Latest], meet storage as it is now. If storage is at an older revision than the cache, and has
// another identity, so does a List that is Latest, and a Linearizable watch is refused. Other reads,
// and watches that begin meanwhile, may be of the history before. So may the object from which
// [Engine.Update] makes a new one, if reading the backend is I/O and the objects of both histories
// have the same revision.
//
// # Slow consumers
//
// A slow consumer does not affect others. See [Policy] for what happens to it.
//
// # Concurrency
//
// All methods of Engine, Host and Topic are safe for concurrent use. Returned objects
// and values are shared and must not be changed. In tests [Config].DetectMutations
// finds such changes.
//
// # Loops
//
// Breaking out of a loop over events, batches, updates or messages loses nothing, and
// neither does a panic in its body: ranging over the same iterator again continues
// after the last value. A [Watch] goes on until it is stopped, in a loop or not. The
// iterators of [Follow] and [Topic.Messages] open a watch of their own, which ends with
// the loop; the next loop opens another.
//
// # Closing
//
// [Engine.Close] ends every watch at once, with [ErrEngineClosed]. [Engine.Drain] first
// delivers to every watch what was committed. Both return when no goroutine, actor or
// timer of the engine is left. If a handler does not return, Close fails after
// [HostConfig].CloseTimeout with an error that names it. Package enginetest checks all
// that in your tests.
//
// # Layout
//
// Nothing below this package's exported types has type parameters, so that another
// object type costs little compile time. A value follows the header of its object in
// memory, and the exported types convert pointers to headers; as.go of package store
// says why that is sound.
//
// The alternative is a value in an interface beside the header. It would have 0.8 of the
// deliveries to 1,000 watches, and take 53 bytes more for an object; BenchmarkLayout of
// package bench compares both.
//
// # Kubernetes
//
// docs/parity.md lists, for each behaviour of the Kubernetes watch cache, the test
// that covers it here, or why it does not apply to Go values in one process. Where the
// original closes a watch silently, an engine gives the reason. Where it ends all
// watches for a relist, they continue here.
package engine
