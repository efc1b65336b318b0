// Package enginetest helps to test programs that use the engine: an engine with leak
// checks, expectations about the events of a watch, and a source with faults on demand.
//
//	func TestController(t *testing.T) {
//		e := enginetest.New(t, engine.Config[Pod]{Key: podKey})
//		w := e.Watch(engine.WatchOptions{})
//		e.Create(pod)
//		enginetest.ExpectExactly(t, w, enginetest.Added(pod))
//	}
//
// # The engine
//
//	New ──▶ Engine ──Create, Update, …──▶ engine.Engine ──▶ Watch ──▶ Expect…
//	 │         └─ errors fail the test        ▲
//	 │                                 Source: scripted faults
//	 └─ when the test ends: Close, then actors, timers, goroutines
//
// [New] starts an engine whose calls take no context and fail the test on an
// error. When the test ends it is closed, and the test fails if anything
// outlives it: an actor or a timer of its host, or a goroutine that was started
// after the engine, such as one that a handler has started and never ends.
//
// It also runs with the mutation detector: a test that changes a shared object
// fails with the [engine.MutationError] that says which and how.
//
// # Expectations
//
// [Expect] passes if the wanted events come in this order, with others in between or
// not. [ExpectExactly] passes if these come and nothing else, [ExpectNothing] if no event
// comes, [ExpectEnd] if the watch ends for a certain reason. Wanted events are made by
// [Added], [Modified], [Deleted], [Emitted], [Bookmark], [InitialEnd] and [Keyed].
//
// None of them sleeps. To know that no more events will come, they wait until the cache
// has reached the backend's newest revision, the dispatcher has dispatched it, and the
// watch has caught up. So they see all writes before the call. For later writes they
// wait at most [Options].Patience.
//
// # Time and chance
//
// With [Deterministic] an engine runs only while a call waits for it, in the caller's
// goroutine, in an order that depends on a seed, and its time is a [VirtualClock] that
// [Engine.Advance] moves.
//
// # Faults
//
// [Source] is a backend in memory with faults on demand: it fails lists and watches,
// breaks running watches, stalls, hides changes, repeats them, and drops its history. It
// starts no goroutine.
//
// # Caveats
//
// The goroutines of tests that run in parallel cannot be distinguished: in a test that
// called t.Parallel they are not checked, which is logged. Actors and timers are. Use
// goleak.VerifyTestMain, too, which checks goroutines after all tests.
package enginetest
