// Package storage is what the engines of a world store their objects in. It is a backend in
// memory that fails, loses history and goes back in time when the scenario says so. It keeps
// the history with which the world must agree.
//
//	step of the scenario ──▶ Disturb: faults, broken watches, lost answers, Compact
//	                         Rewind:  back to a revision, and on with others
//	                         Transact: several changes at one revision
//	                            │
//	engine ── call, result ──▶ Storage ──▶ memory ──▶ expiry of leases
//	                            │                        │
//	                            └─▶ History ◀────────────┘
//
// It is not safe for concurrent use.
package storage
