package watchcache

import "sync/atomic"

// Stats is what a watchCache has done. Anyone may read it at any time; the
// figures are each right but not all of one instant.
type Stats struct {
	// Events counts the changes applied, Synthetic those found by comparing
	// states after a relist.
	Events, Synthetic atomic.Uint64
	// Unseen counts the revisions that relists passed by without an event, if
	// Config.Emits.
	Unseen atomic.Uint64
	// Replaces counts the lists taken, Publications the snapshots published.
	Replaces, Publications atomic.Uint64
	// Trimmed counts the events that left the window.
	Trimmed atomic.Uint64
	// Inconsistent counts the changes that did not fit the state; each led to a
	// relist.
	Inconsistent atomic.Uint64
}
