// Package resttest runs the suite with which Kubernetes tests its own registries on a
// registry of this module.
//
//	resttest.Tester ──rest.StandardStorage──▶ storage ──▶ registry.Resource ──▶ engine
//	                                             └──table──▶ serve
//
// The adapter, storage, hands requests to the registry as package serve does, so that what
// the suite finds is the registry's. It tests creation, update, deletion, graceful deletion,
// reads, lists, tables and watches of a kind with namespaces and of one without.
//
// It is a package of its own, since no other test of module interop needs the API server's
// packages. There is nothing in it but tests.
package resttest
