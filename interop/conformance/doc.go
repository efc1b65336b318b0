// Package conformance runs Kubernetes' own end-to-end tests, most of them of its conformance suite,
// against a server of this module.
//
//	k8s.io/kubernetes/test/e2e ──client-go, protobuf──▶ serve ──▶ registry ──▶ engine
//	        │                                                       ▲
//	        └── specs, by name                                      └── kinds of k8s.io/api
//
// The server has the kinds of package serve/corekinds, others of Kubernetes' API types, with hardly any rules, and
// those that the specs define. The specs that run are those that need an API server alone. They hold that clients can
// write, patch, list in pages, watch, resume and delete, that field owners are kept apart, and that
// discovery, OpenAPI and tables are as clients expect. [specs] names them, and what keeps others
// from passing.
//
// Random objects of the kinds of serve/corekinds are refused for the same fields as by Kubernetes' own validation. After
// random writes of an event by both of its groups, managers own the fields that they own by Kubernetes' own field manager.
//
// Kubernetes' garbage collector runs against a server, too: it must orphan and delete dependents as clients ask.
//
// It is a module of its own, since nothing else has to compile Kubernetes' tests. It has only
// tests.
package conformance
