// Package server implements the command serve: it reads kinds from manifests, opens their
// storage, and serves them.
//
//	--crd FILE ──crd.Parse──▶ Definition ──▶ registry.Store ──▶ serve.Server ──▶ --listen
//	                                            │
//	                              --data: memory, or one file
//	                              --upstream: another server, of which this is a replica
package server
