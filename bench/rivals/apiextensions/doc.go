// Package apiextensions adapts the Kubernetes server of custom resources as a contender.
//
//	client ──TLS──▶ apiextensions-apiserver: a CustomResourceDefinition ──▶ etcd, in this process
//
// Its own test fixture starts the server, as its integration tests do: with authentication by
// a token, authorization, audit, the watch cache and default feature gates, but without
// priority and fairness and the admission plugins that need a whole cluster. The kind has a
// schema, and objects have managed fields. The etcd does not wait for the disk, which favours
// the rival.
//
// The fixture sets feature gates and flags of the process and leaves goroutines behind, so a
// run of it needs a process of its own.
package apiextensions
