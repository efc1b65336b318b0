// Package scenario describes a load for an engine: objects, writers, watchers,
// readers, faults, and the assertions that must hold at the end.
//
//	file (YAML) ──Parse: strict, every error with line and column──┐
//	                                                               ▼
//	Go: a Scenario literal ────────────────────────────────▶ Scenario ──Resolve──▶ Plan ──▶ package load
//	                                                               ▲    defaults, --small,    │
//	shipped: Library, Shipped(name) ───────────────────────────────┘    seed, timeline        └─▶ Explain
//
// # A scenario in a file
//
//	name: two-consumers
//	duration: 20s
//	engine: {window: 1000, backoff: 10ms, backoff-max: 100ms}
//	objects: {count: 1000, fields: {node: 50}}
//	writers:
//	  - {rate: 500, shape: poisson, mix: {update: 8, create: 1, delete: 1}}
//	watchers:
//	  - {name: nodes, count: 50, fields: "node={node}", initial: true}
//	  - {name: slow, count: 5, consume: {rate: 100}, policy: conflate}
//	faults:
//	  - {kind: break, at: 5s, every: 5s}
//	  - {kind: fail, at: 8s, for: 2s, when: {and: [{operation: list}, {probability: 0.5}]}}
//	  - {kind: relist, at: 9s}
//	assert:
//	  - lost = 0
//	  - nodes.unread = 0
//	  - p99 < 500ms
//
// # Limits of a file
//
//	size                 64 KiB (MaxFile)
//	nesting              20 lists and mappings within each other
//	name of a field      128 bytes
//	value                4 KiB
//	blank lines          100 in a row
//	aliases written out  100,000 lists, mappings and values;
//	                     4 MiB of values and of the paths to them
//
// All but the last are checked before the file is parsed, because the memory that
// the YAML parser takes grows with the product of size, nesting and names. A
// scenario in Go has no such limits.
//
// # The same in Go
//
// A [Scenario] consists of plain structs with the fields of the file; their zero
// values are useful. Both ways go through the same validation, in Resolve, and
// give the same [Plan] with the same hash.
//
// # Faults
//
// Some faults happen at one moment (break, relist, compact, panic, reconnect,
// jump). Others last, and affect the storage calls that meet a [Condition] (fail,
// delay, stick). See [FaultKind].
//
// # Concurrency
//
// Scenarios and plans are values that may be read concurrently. Nothing in this
// package starts goroutines or keeps state.
package scenario
