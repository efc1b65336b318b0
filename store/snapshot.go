package store

import (
	"sync/atomic"
	"time"
)

// Snapshot is all that a cache knows at one revision: the state and the recent
// changes that led to it. It is immutable.
type Snapshot struct {
	// Revision is what the snapshot is of: State holds the newest of every
	// object at it, Window ends with it.
	Revision Revision
	// Generation counts the times that the cache was filled from a list. Zero
	// means never: State and Window are then empty.
	Generation uint64
	// Epoch counts the times that history started anew because storage went back
	// in time: positions and revisions of another epoch mean nothing in this one.
	Epoch uint64
	// State is the newest state of every object, with its indexes.
	State *TreeView
	// Window is the changes that are still kept.
	Window WindowView
	// At is when the snapshot was taken, by the cache's clock.
	At time.Time
}

// Published is the one place where a cache's writer leaves its newest snapshot
// for readers. One goroutine stores; any number load, without waiting. The
// zero value holds the empty snapshot.
type Published struct {
	current atomic.Pointer[Snapshot]
}

// Load returns the newest snapshot, never nil.
func (p *Published) Load() *Snapshot {
	if s := p.current.Load(); s != nil {
		return s
	}
	return &Snapshot{}
}

// Store publishes s, which must not change afterwards.
func (p *Published) Store(s *Snapshot) { p.current.Store(s) }
