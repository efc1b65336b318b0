// Package server implements the command serve: it reads kinds from manifests, opens their
// storage, and serves them.
//
//	--crd FILE ──crd.Parse──▶ Definition ──▶ registry.Store ──▶ serve.Server ──▶ --listen
//	                                            │
//	                              --data: memory, one file, or etcd
//	                              --upstream: another server, of which this is a replica
//	                  └──▶ apiextensions.Static: clients read the manifests
//
//	--allow-crds ──▶ apiextensions.Definitions: clients define other kinds in the same storage
//	--core-kinds ──▶ kinds of Kubernetes itself in the same storage, if the program has them
//	reviews: what users may do, for clients that ask; a replica asks its origin
//	--upstream ──▶ following: serves the kinds that are defined there, as they come, change and go
//
// It reads certificates and tokens again when they change, writes snapshots of the file, an audit log, and
// a log that is bounded; see [Flags].
//
// Programs share it: watchmill, and watchmill-etcd, which adds etcd to the [Storages] and evaluates
// rules in CEL.
package server
