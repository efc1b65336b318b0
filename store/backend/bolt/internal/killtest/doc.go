// Package killtest kills a writing process repeatedly and checks the file that is left.
//
//	parent ── starts ──▶ child: 64 writers, one watch ── pipe ──▶ what was acknowledged,
//	   │                   │                                       what the watch saw
//	   └── SIGKILL ───────▶✕
//	   └── opens the file ──▶ acknowledged ⊆ found, seen ⊆ found, revisions without a
//	                          gap, no revision used twice, the watch continues where the
//	                          child's was, each chain of values unbroken
//
// What must be found is computed from the child's output alone.
package killtest
