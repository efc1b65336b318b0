// Package explore plays an engine through random scenarios in random
// interleavings, on virtual time and on one goroutine, and judges all that it
// shows. A seed is an execution: what it finds, it finds again.
//
//	seed ──▶ Draw ──▶ Scenario: steps, as data        ┌──────────── World ───────────────┐
//	  │                  │   ▲ shrink: leave out      │ storage ──▶ engine ──▶ watches   │
//	  │                  ▼   │ steps while it fails   │    │          ▲ │         │      │
//	  └──▶ scheduler ──▶ play ──────────────────────▶ │  history    clock         records│
//	       whose turn is next                         └────┬────────────────────────┬────┘
//	                                                       └──────▶ judge ◀─────────┘
//	                                                       trace: everything, hashed
//
// The scheduler is the executor of every actor, and runs one turn at a time. A
// step of the scenario does something from outside: it writes, starts or reads a
// watch, reads, breaks storage, or lets time pass; between steps, and while a
// call waits, the engine has a drawn number of turns. So a scenario meets the
// engine in the middle of everything.
//
// Storage is a backend in memory with faults. What it acknowledges is the truth
// that package judge holds watches and reads to.
//
// The scenario is drawn before anything happens and refers to nothing that
// happens, so steps can be left out of one that fails, with the same seed for
// the interleaving, until the shortest remains.
package explore
