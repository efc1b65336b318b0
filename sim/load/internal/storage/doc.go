// Package storage is where the objects of a load live: a backend, in memory unless another is given, which
// faults can strike, which stamps each write, and which notes it in a ledger.
//
//	engine ──▶ faults: fail, delay, stick ──▶ recorder: stamp ──▶ backend
//	   ▲                                          └──▶ judge.Ledger │
//	   └───────── watch: break, expire, silence ◀───────────────────┘
//
// # Concurrency
//
// Everything can be called from anywhere, as the engine calls a backend.
package storage
