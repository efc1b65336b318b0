package store

import (
	"fmt"
	"sync/atomic"
	"time"
)

// Snapshot is a cache's content at one revision: the state and the recent changes
// that led to it. It is immutable.
type Snapshot struct {
	// Revision is the snapshot's: State is the state at it, Window ends with it.
	Revision Revision
	// Generation counts the times that the cache was filled from a list. Zero
	// means never: State and Window are then empty.
	Generation uint64
	// Epoch counts the times that history restarted because storage went back in
	// time, or is another one: positions and revisions are comparable only within an
	// epoch.
	Epoch uint64
	// StoreID identifies the storage that the content is of; empty if unknown.
	StoreID string
	// State is the newest state of every object, with its indexes.
	State *TreeView
	// Window has the recent changes.
	Window WindowView
	// At is when the snapshot was taken, by the cache's clock.
	At time.Time
}

// Timeline is the history that a revision belongs to. Revisions of two timelines
// cannot be compared: the same one may have other content.
type Timeline struct {
	// StoreID identifies the storage; empty if unknown. Epoch is that of the cache.
	StoreID string
	Epoch   uint64
}

// Timeline returns that of the snapshot's revisions.
func (s *Snapshot) Timeline() Timeline { return Timeline{s.StoreID, s.Epoch} }

// String names the timeline.
func (t Timeline) String() string { return fmt.Sprintf("%s#%d", t.StoreID, t.Epoch) }

// Published is a cache's newest snapshot. One goroutine stores; any number load,
// without waiting. The zero value holds the empty snapshot.
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
