// Package backendtest is what every [backend.Backend] must pass. It is public,
// so that a backend of your own can be held to the same:
//
//	func TestConformance(t *testing.T) {
//		backendtest.Run(t, func(t testing.TB, schema store.Schema) backendtest.Harness {
//			clock := clock.NewVirtual(time.Now())
//			b, err := mybackend.New(schema, clock)
//			require.NoError(t, err)
//			return backendtest.Harness{Backend: b, Pass: clock.Advance}
//		})
//	}
//
//	          ┌─ Check ─ writes ──▶ Backend ──▶ List, Get ──▶ compare with what was written
//	Run ──────┼─ Check      ⋮          │
//	(t.Run)   └─ Check                 └─────▶ follower: Next until Through ≥ revision;
//	                                           every batch must join the one before,
//	                                           every event must be well formed
//
// Each [Check] works on a backend of its own, asserts nothing about wall time
// (only a wait that outlasts [Harness.Patience] fails), and is known to fail:
// the package's own tests hold it against backends that are broken on purpose.
//
// # Storage that lasts, storage that is shared
//
// A harness says what else can be done with the storage: to open it again as a new
// process would ([Harness].Reopen), to open it twice ([Harness].Another), to change
// several keys at one revision as a foreign program would ([Harness].Transact). The
// checks of that do nothing without, but [backend.Traits] must agree: what says that
// it keeps history has to be reopened.
//
// # What is not checked
//
// Checks named Contract hold a sentence of package backend's documentation, the
// others a behaviour of Kubernetes' storage, as far as it is one of a backend. The
// file docs/parity.md has them all. Not a backend's are:
//
//   - preconditions, suggestions, validation and updates that change nothing: they
//     are decided in [backend.Storage], above the backends, and tested there. What
//     they need of a backend, writes conditional on a revision, is here;
//   - reads that may be stale, or are not older than a revision, selectors, initial
//     states and bookmarks: they are the cache's. The progress that bookmarks rest
//     on is here, and comes with every batch;
//   - how values are encoded: each backend has tests of its own for that.
package backendtest
