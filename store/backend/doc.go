// Package backend is the contract between the engine and versioned storage, whether
// that is memory, a file or a cluster.
//
//	users ──Create/Get/List/GuaranteedUpdate/Delete──▶ Storage   retries, preconditions,
//	                                                     │       suggestions, validation
//	                                            Put/Remove, conditional on a revision
//	                                                     ▼
//	                                                  Backend    memory | bolt | etcd
//	                                                     │
//	Reflector ◀──List pages, Batches in revision order───┘
//
// A [Backend] has a few primitive, conditional operations; [Storage] implements the
// operations of users on them, once for all backends. Each backend is a package below
// this one; backendtest has the tests that all of them pass.
//
// Watches are pulled. The backend keeps the history, [Watcher.Next] returns the next
// part of it without blocking, and a notification says when to call it again. So a slow
// reader costs the backend only history, and nothing waits inside the backend.
//
// # Writing a backend
//
// Test it with package backendtest. Let the functions of this package interpret options,
// so that they mean the same in all backends:
//
//   - for a list with its continue tokens [ListOptions.Scan], [Scan.Check] and [Page];
//   - for the start of a watch [WatchOptions.Validate] and [WatchOptions.Check];
//   - for a write [PutOptions.Validate] and [PutOptions.Expires], and [CheckExpected] for
//     its condition;
//   - for a key [store.ValidateKey], and [store.HasPrefix] for a prefix.
//
// A method with a context begins with context.Cause, even if it does not block. The object of
// a deletion is made by [store.Schema.Gone]. [Describe] calls the schema and contains its
// panics. A backend that keeps versions in memory calls [store.ShareAttributes], to save memory
// and time.
// A backend whose revisions outlive the process is an [Identifier]: without an identity the
// consumers of an engine over it cannot save where they are.
//
// A service without a history and watches, which is only read, needs no backend of its own: what
// it answers is written to one in memory, as in the example of package informer that polls.
package backend
