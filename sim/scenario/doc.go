// Package scenario describes load for an engine: objects, writers, watchers,
// readers, faults, and what must hold in the end.
//
//	file (YAML) ──Parse: strict, every error with line and column──┐
//	                                                               ▼
//	Go: a Scenario literal ────────────────────────────────▶ Scenario ──Resolve──▶ Plan ──▶ load mode
//	                                                               ▲    defaults, --small,    │
//	shipped: Library, Shipped(name) ───────────────────────────────┘    seed, timeline        └─▶ Explain
//
// # A scenario in a file
//
//	name: two-consumers
//	duration: 20s
//	objects: {count: 1000, fields: {node: 50}}
//	writers:
//	  - {rate: 500, shape: poisson, mix: {update: 8, create: 1, delete: 1}}
//	watchers:
//	  - {name: nodes, count: 50, fields: "node={node}", initial: true}
//	  - {name: slow, count: 5, consume: {rate: 100}, policy: conflate}
//	faults:
//	  - {kind: break, at: 5s, every: 5s}
//	  - {kind: fail, at: 8s, for: 2s, when: {and: [{operation: list}, {probability: 0.5}]}}
//	assert:
//	  - lost = 0
//	  - nodes.unread = 0
//	  - p99 < 50ms
//
// A file has at most [MaxFile] bytes, 20 lists and mappings within each other, 128
// bytes in a name and 4 KiB in a value; aliases count as what they stand for, of
// which there may be 100,000 lists, mappings and values, and 4 MiB of text with
// the paths to them. The limits are checked before the file is parsed, since the
// memory that parsing takes grows with their product.
//
// # The same in Go
//
// A [Scenario] is plain structs, each with a useful zero value, whose fields are
// those of the file. Both ways go through the same validation, in Resolve, and
// make the same [Plan] with the same hash.
//
// # Faults
//
// Some faults happen at moments (break, relist, compact, panic, reconnect, jump),
// others hold for a while and strike those calls of the storage that meet a
// [Condition] (fail, delay, stick). See [FaultKind].
//
// # Concurrency
//
// Scenarios and plans are values: nothing here starts anything or keeps state.
package scenario
