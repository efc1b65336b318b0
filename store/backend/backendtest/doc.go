// Package backendtest has the checks that every [backend.Backend] must pass. Use it to
// test a backend of your own:
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
//	                                           every batch must start where the one
//	                                           before ended, every event be well formed
//
// Each [Check] uses a new backend and asserts nothing about wall time, except that no
// wait may outlast [Harness].Patience. Each can fail: the package's own tests run it
// on backends that are broken on purpose.
//
// # Durable and shared storage
//
// A harness can have more functions, for more checks:
//
//   - [Harness].Reopen opens the storage again, as a new process would;
//   - [Harness].Another opens it twice;
//   - [Harness].Transact changes several keys at one revision, as a foreign program would.
//
// The checks of a function that is missing are reported as skipped, with the reason. So are
// those of TTLs, of a [backend.Emitter], of requests for progress, and of lists and watches that
// tell their storage, if the backend has none. But [backend.Traits] must agree: a backend that
// says that it keeps history needs Reopen.
//
// # What is not checked
//
// Checks named Contract check a sentence of package backend's documentation, the others
// a behaviour of Kubernetes' storage. The file docs/parity.md lists them. Not part of a
// backend are:
//
//   - preconditions, suggestions, validation and updates that change nothing:
//     [backend.Storage] implements them above the backends, on writes conditional on a
//     revision, which are checked here;
//   - stale reads, reads not older than a revision, selectors, initial states and
//     bookmarks: the cache implements them, on the progress in every batch, which is
//     checked here;
//   - the encoding of values: each backend tests its own.
package backendtest
