// Package world plays one scenario against one engine, and judges what the engine shows.
//
//	                 step                 ┌─────────────── World ────────────────┐
//	scenario ──▶ do ──┬─ a client's call ─▶ engine ──▶ watches ──▶ consumers     │
//	                  ├─ a fault ─────────▶ storage     └──▶ mirrors: informer,  │
//	                  └─ turns, time ─────▶ scheduler, clock          objects    │
//	                                       └──┬─────────────┬──────────┬─────────┘
//	                                       history       records    results
//	                                          └──────▶ judge ◀─────────┘ ──▶ Outcome
//
// [Play] plays the steps one after the other and checks the invariants after each. At the
// end it lets the engine come to rest, unless the scenario is abrupt or drains it, and closes
// it; then nothing may be left of it. User code gets a [World] by [Config].Attach. Read package
// explore first: it says which scenarios are played and how they are judged.
//
// # Seams
//
// The tests of this package prove that the judge finds defects. They put faults into the
// seams, the points where messages pass between the engine and its surroundings, which are
// nil in every other world.
package world
