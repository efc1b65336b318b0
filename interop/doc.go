// Package interop runs common Kubernetes clients against a server of this module: the
// dynamic, metadata and typed clients and informers of client-go, its RetryWatcher,
// and kubectl, built from its module.
//
//	kubectl, client-go ──HTTP──▶ serve ──▶ registry ──▶ engine, all in the test's process
//
// It is a module of its own, since these clients are far heavier than all of what
// they test. There is nothing in it but tests, and the command kubectl.
//
// The tests run with client-go's own detectors on: one lists after every initial
// state that was watched, and panics at a difference; one panics when a cached
// object was changed.
package interop
