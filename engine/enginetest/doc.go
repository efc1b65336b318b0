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
// error. When the test ends it is closed. The test fails if anything outlives it: an
// actor or a timer of its host, or a goroutine that was started after the engine, such
// as one that a handler started.
//
// It also runs with the mutation detector: a test that changes a shared object
// fails with the [engine.MutationError] that says which and how.
//
// # Expectations
//
//   - [Expect]: the wanted events come in this order; others may be in between.
//   - [ExpectExactly]: the wanted events come in this order, and no others.
//   - [ExpectNothing]: no event comes.
//   - [ExpectEnd]: the watch ends for a certain reason.
//
// Wanted events are made by [Added], [Modified], [Deleted], [Emitted], [Bookmark],
// [InitialEnd] and [Keyed].
//
// An expectation sees all writes before its call, and does not sleep: it waits until the
// cache has reached the backend's newest revision, the dispatcher has dispatched it, and
// the watch has caught up. For later writes it waits at most [Options].Patience.
//
// # Time and chance
//
// With [Deterministic] an engine runs in the caller's goroutine, while a call waits for
// it, in an order that a seed determines. Its time is a [VirtualClock], which
// [Engine.Advance] moves. Consumers on goroutines of their own do not suit it: what they wait
// for fails with [engine.ErrIdle] when the engine has nothing left to run.
//
// A program that has goroutines and timers of its own runs in a bubble of testing/synctest, with
// an engine that [New] starts there. The engine's time is then the bubble's, synctest.Wait returns
// when the engine has delivered everything, too, and time.Sleep lets its timers fire. Hosts,
// informers, controllers, and files of package bolt are used in a bubble in the same way.
//
// # Faults
//
// [Source] is a backend in memory with faults on demand: it fails lists and watches,
// breaks running watches, stalls, hides changes, repeats them, and drops its history. It
// starts no goroutine.
//
// # Caveats
//
// The goroutines of tests that run in parallel cannot be told apart. So they are not
// checked in a test that called t.Parallel, which is logged; actors and timers are. Use
// goleak.VerifyTestMain, too, which checks goroutines after all tests.
package enginetest
