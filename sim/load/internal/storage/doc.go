// Package storage is the backend of a load, in memory unless another is given. It
// injects faults, stamps each write with the time, and records it in a ledger.
//
//	engine ──▶ faults: fail, delay, stick ──▶ recorder: stamp ──▶ backend
//	   ▲                                          └──▶ judge.Ledger │
//	   └───────── watch: break, expire, silence ◀───────────────────┘
//
// # Concurrency
//
// Everything is safe for concurrent use.
package storage
