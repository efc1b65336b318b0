// Package engine is the in-process event engine: versioned objects of one type,
// a cache of them, and watches that see every change.
//
//	pods, err := engine.New(engine.Config[Pod]{Key: podKey, Labels: podLabels})
//	web, err := pods.Create(ctx, pod)
//	w, err := pods.Watch(ctx, engine.WatchOptions{Labels: "app=web", From: web.Revision})
//	for ev, err := range w.Events() { ... }
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
// engines may share, and so is each watch with a handler; other watches are cursors that
// their consumer moves. An [Engine] only wires them; each is described in its own package
// under actors.
//
// # Usage
//
// An [Engine] keeps state: Create, Get, List, Update, Delete, Watch. [Engine.Emit]
// sends events that are not state. A [Topic] is an event bus without state.
//
// # Concurrency
//
// All methods of Engine, Host and Topic are safe for concurrent use. Returned objects
// and values are shared and must not be changed; [Config].DetectMutations detects
// changes in tests.
//
// # Order
//
// Every change has a [Revision]; a watch delivers changes in that order, each once.
// If it leaves one out, it ends with [ErrExpired], or an event is marked
// [Conflated] or [AfterGap]. After a write that returned revision R, a watch from R sees
// every change after that write.
//
// # Slow consumers
//
// A slow consumer does not affect others. See [Policy] for what happens to it.
//
// # Loops
//
// Breaking out of a loop over events, batches, updates or messages loses nothing:
// ranging over the same iterator again continues behind the last value. What the
// iterator itself has opened ends with the loop and is opened again, as the watch of
// [Follow] and the subscription of [Topic.Messages]; a [Watch] that the loop was given
// goes on until it is stopped. A loop whose body panics is left in the same way.
//
// # Closing
//
// [Engine.Drain] delivers to every watch what was committed, and closes. Close ends every
// watch at once, with [ErrEngineClosed]. Both return when no goroutine, actor
// or timer of the engine is left. If a handler does not return, Close fails after
// [HostConfig].CloseTimeout, with an error that names what still runs. Package
// enginetest checks all that in your tests.
//
// # Layout
//
// Everything below this package's exported types is compiled once and has no type
// parameters, so that another object type costs little compile time. A value follows its
// object's header in memory, and the exported types convert pointers to headers (package
// store, as.go, says why that is sound). The alternative is a value in an interface
// beside the header. BenchmarkLayout of package bench compares both: with an interface,
// 1,000 watches of everything (W1) have 0.8 of the deliveries; writes to 5,000 watches of
// one value of a field each (W5) are as many; each of 150,000 objects with a full window
// (W13) takes 53 bytes more, 406 instead of 353 beyond its value; and a write of a struct
// costs one more allocation. So values follow headers.
//
// # Kubernetes
//
// docs/parity.md lists, for each behaviour of the Kubernetes watch cache, the test
// that covers it here, or why it does not apply to Go values in one process. Where
// the original closes a watch silently, an engine gives the reason; where it ends all
// watches for a relist, they continue here.
package engine
