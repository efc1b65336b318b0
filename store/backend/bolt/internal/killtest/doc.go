// Package killtest kills a writing process repeatedly and checks the file that is left.
//
//	parent ── starts ──▶ child: 64 writers, one watch ── pipe ──▶ what was acknowledged,
//	   │                   │                                       what the watch saw
//	   └── SIGKILL ───────▶✕
//	   └── opens the file ──▶ acknowledged ⊆ found, seen ⊆ found, revisions without a
//	                          gap, no revision used twice, the watch continues where the
//	                          child's was, each chain of values unbroken
//
// The expected content is computed from the child's output alone.
//
// Its tests do the same with an engine in the child, whose consumers save checkpoints, and
// with sim/judge for what all lives of a consumer add up to.
//
//	child: 16 writers ─▶ engine ─▶ nine consumers ─▶ a journal each of what it handled
//	           │            ▲            └─────────▶ its checkpoint: with each event,
//	           │            └─ in the next life ──── after a batch, or in a file
//	         pipe: what was tried, acknowledged and refused
//	parent: the file's history ─▶ judge ◀─ journals: exactly once, or at least once
package killtest
