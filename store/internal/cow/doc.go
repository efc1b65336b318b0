// Package cow is a copy-on-write B+ tree: a sorted set of which a view takes constant
// time.
//
//	   ┌─ "a" ─┬─ "f" ─┐          an inner node has the place at which each
//	   │       │       │          part begins; only leaves have entries
//	a b c d   f g    h i k
//
// Each node belongs to one tree, or to none any more: a view ends what the tree owns,
// so that the next write to a node copies it first, and those on the path to it.
//
// Entries that come in order, all or within a range, fill their leaves: where an entry is
// put behind the one that was put before it, a full leaf is split between them. Otherwise
// it is split in halves.
package cow
