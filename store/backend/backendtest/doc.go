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
// # Rows
//
// A check named RowNNN holds the behaviour of that row of Kubernetes' storage
// tests, as far as it is one of a generic backend; one named Contract holds a
// sentence of package backend's documentation. Other rows are elsewhere:
//
//   - 6-8, 10-14, 29, 31, 33 (preconditions, suggestions, validation, no-ops)
//     are decided in [backend.Storage], above the backends, and tested there.
//     What they need of a backend, writes conditional on a revision, is here.
//   - 1 and 4 in part (a preset revision on create; reads that may be stale):
//     values carry no revision, and a backend's reads are never stale. Reads at
//     a revision or not older than one are the watch cache's.
//   - 16-18, 22, 23, 34, 45, 46, 60 (objects that cannot be decoded, unsafe
//     deletion): how values are encoded is a matter of each backend, and of its
//     own tests.
//   - 20, 28 (list modes): there is one mode here, exact; the others are the
//     cache's.
//   - 25, 26, 37, 52-54, 56-59 (selectors, initial events, bookmarks): watches
//     of a backend are not filtered but by prefix, and end with no bookmark;
//     that is the watchers' work. The progress that bookmarks rest on is here.
//   - 35 (statistics): a backend keeps none.
//   - 48, 50 (timeouts, initialization signal): pulled watches have neither.
//   - 51 (progress notification at intervals): progress comes with every batch.
package backendtest
