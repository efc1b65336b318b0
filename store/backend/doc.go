// Package backend is the contract of versioned storage: what the engine needs
// from the place where objects live, whether that is memory, a file or a
// cluster.
//
//	users ──Create/Get/List/GuaranteedUpdate/Delete──▶ Storage   retries, preconditions,
//	                                                     │       suggestions, validation
//	                                            Put/Remove if still at revision
//	                                                     ▼
//	                                                  Backend    memory | bolt | etcd
//	                                                     │
//	Reflector ◀──List pages, Batches in revision order───┘
//
// A [Backend] has a handful of primitive, conditional operations; [Storage]
// builds on them, once for all backends, what users call. Each backend is a
// package below this one; backendtest is the suite that all of them pass.
//
// Watches are pulled: the backend keeps the history, [Watcher.Next] hands out
// the next part of it without blocking, and a notification says when to ask
// again. A slow reader so costs the backend nothing but history, and nothing
// waits inside it.
//
// # Writing a backend
//
// What options mean is worked out here, so that it is the same everywhere:
// [ListOptions.Scan], [Scan.Check] and [Page] serve a list with its continue
// tokens, [WatchOptions.Validate] and [WatchOptions.Check] start a watch,
// [PutOptions.Validate] judges a write, and [Describe] asks the schema without
// letting its panics through. A backend that keeps versions in memory calls
// [store.ShareAttributes], for memory and for speed. Then pass the suite
// of package backendtest.
package backend
