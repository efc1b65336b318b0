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
// since New. So a watch handler that starts a goroutine and forgets it is found.
//
// It also runs under the mutation detector: a test that changes a shared object
// fails with the [engine.MutationError] that says which and how.
//
// # Expectations
//
// [Expect] wants events to come in an order and lets others be between.
// [ExpectExactly] wants these and then nothing more, [ExpectNothing] nothing at
// all, [ExpectEnd] the end of the watch for a reason. They say what they want
// with [Added], [Modified], [Deleted], [Emitted], [Bookmark], [InitialEnd] and
// [Keyed].
//
// None of them sleeps. To know that no more events will come, they wait until the cache
// has reached the backend's newest revision, the dispatcher has dispatched it, and the
// watch has caught up. So they see all writes before the call. For later writes they
// wait at most [Options].Patience.
//
// # Time and chance
//
// With [Deterministic] an engine stands still unless a call needs it, on one
// goroutine, in an order that a seed decides, and its time is a [VirtualClock]
// that [Engine.Advance] moves.
//
// # Faults
//
// [Source] is a backend in memory with faults on demand: it fails lists and watches,
// breaks running watches, stalls, hides changes, repeats them, and drops its history. It
// starts no goroutine.
//
// # Caveats
//
// Goroutines have no owner, so those of tests that run in parallel cannot be
// told apart: in a test that called t.Parallel they are not looked at, which is
// logged. Actors and timers are. Use goleak.VerifyTestMain beside it, which
// looks when all tests are over.
package enginetest
