// Package server is the command serve: kinds from manifests, storage and a server
// over them.
//
//	--crd FILE ──crd.Parse──▶ Definition ──▶ registry.Store ──▶ serve.Server ──▶ --listen
//	                                            │
//	                              --data: memory, or one file
//	                              --upstream: another server, of which this is a replica
package server
