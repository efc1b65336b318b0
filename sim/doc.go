// Package sim simulates load on an engine and looks for errors in it.
//
//	             scenario ──Resolve──▶ plan
//	                                    │
//	Run      real time, goroutines  ────┴──▶ load ──▶ Report: latency, throughput, lost events,
//	                                                          assertions; text, JSON, page
//	Explore  virtual time, one goroutine, a seed per world ──▶ judge ──▶ the shortest
//	                                                          way to break an invariant
//
// [Run] puts a scenario's load on an engine, in real time, and reports what was
// measured. Scenarios are YAML files or Go literals: see package scenario.
//
// [Explore] plays random scenarios in random interleavings, each from a seed, and
// compares what the engine shows with the history of storage: see package explore.
//
// The packages below can be used by themselves:
//
//	scenario  describes loads
//	load      runs them
//	report    presents the results
//	explore   looks for errors: its package script has the scenarios, world plays one
//	judge     checks what an engine showed
//	trace     reads recorded histories
//	pace      keeps time
package sim
