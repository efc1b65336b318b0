// Package killtest kills a process that writes, over and over, and judges what it
// has left.
//
//	parent ── starts ──▶ child: 64 writers, one watch ── pipe ──▶ what was acknowledged,
//	   │                   │                                       what the watch saw
//	   └── SIGKILL ───────▶✕
//	   └── opens the file ──▶ acknowledged ⊆ found, seen ⊆ found, revisions without a
//	                          hole, no revision used twice, the watch goes on where the
//	                          child's was, each chain of values unbroken
//
// The model of what must be found is made of the child's lines alone.
package killtest
