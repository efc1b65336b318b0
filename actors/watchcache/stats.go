package watchcache

import "sync/atomic"

// Stats are a watchCache's counters. They are safe to read at any time; each is
// exact, but they are not a snapshot of one instant.
type Stats struct {
	// Events counts the changes applied, Synthetic those found by comparing
	// states after a relist.
	Events, Synthetic atomic.Uint64
	// Unseen counts the revisions that relists skipped without an event, if
	// Config.Emits and Contiguous.
	Unseen atomic.Uint64
	// Replaces counts the lists taken, Publications the snapshots published.
	Replaces, Publications atomic.Uint64
	// ResumesExpired counts the watches that were refused since the changes after the
	// revision that they were given are not known.
	ResumesExpired atomic.Uint64
	// Trimmed counts the events that left the window.
	Trimmed atomic.Uint64
	// Inconsistent counts the changes that did not fit the state; each led to a
	// relist.
	Inconsistent atomic.Uint64
}
