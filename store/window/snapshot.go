package window

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/tree"
)

// Snapshot is a cache's content at one revision: the state and the recent changes
// that led to it. What it returns never changes, and it is safe for concurrent use.
type Snapshot struct {
	// Revision is the snapshot's: State returns the state at it, Window ends with it.
	Revision store.Revision
	// Generation counts the times that the cache became ready: by its first list, and by what
	// it received after each outage. Zero means never: State and Window are then empty, or a
	// part of what storage had at the start.
	Generation uint64
	// Epoch counts the times that history restarted because storage went back in
	// time, or is another one: positions and revisions are comparable only within an
	// epoch.
	Epoch uint64
	// StoreID identifies the storage that the content is of; empty if unknown.
	StoreID string
	// Base is not the state at Revision, but that before the last Unapplied events of
	// Window, which [Snapshot.State] applies, with its indexes. So a cache that nothing reads
	// can publish each event without a new state, whose tree nodes the next write
	// would have to copy.
	Base      *tree.View
	Unapplied int32
	// gets counts the calls of Get that looked through the unapplied events.
	gets atomic.Int32
	// Window has the recent changes.
	Window View
	// At is when the snapshot was taken, by the cache's clock.
	At time.Time

	// made is the state, once it was asked for, if there are unapplied events.
	made atomic.Pointer[tree.View]
	// past are the states rebuilt from events that Window still has, and later snapshots'
	// windows have not.
	past atomic.Pointer[rebuiltStates]
}

// maxGets is how many calls of [Snapshot.Get] look through the unapplied events, some
// nanoseconds each, before the state is made: about what making it costs.
const maxGets = 256

// State returns the newest state of every object, with its indexes. The first call
// applies the unapplied events: some microseconds and kilobytes each, for the tree nodes
// on the way to its object. To read one object, call [Snapshot.Get].
func (s *Snapshot) State() *tree.View {
	if s.Unapplied == 0 {
		return s.Base
	}
	if made := s.made.Load(); made != nil {
		return made
	}
	objects := tree.From(s.Base)
	if err := s.Window.roll(context.Background(), objects, s.base().at, s.Window.next); err != nil {
		panic(err) // the publisher keeps the unapplied events in the window
	}
	s.made.CompareAndSwap(nil, objects.View())
	return s.made.Load()
}

// Get returns the newest state of the object under key, nil if there is none. The first
// calls apply no event, but look for the key among those that are not applied.
func (s *Snapshot) Get(key string) *store.Object {
	if s.Unapplied == 0 || s.made.Load() != nil || s.gets.Add(1) > maxGets {
		return s.State().Get(key)
	}
	o := s.Base.Get(key)
	err := s.Window.each(context.Background(), s.base().at, s.Window.next, func(ev store.Event) {
		switch {
		case ev.Type == store.Emitted || ev.Object.Key != key:
		case ev.Type == store.Deleted:
			o = nil
		default:
			o = ev.Object
		}
	})
	if err != nil {
		panic(err) // as in State
	}
	return o
}

// Known returns the newest state that needs no event to be applied, and the position
// in Window that it is from.
func (s *Snapshot) Known() (*tree.View, Seq) {
	if made := s.made.Load(); made != nil {
		return made, s.Window.next
	}
	base := s.base()
	return base.state, base.at
}

// base returns Base with its position.
func (s *Snapshot) base() knownState {
	return knownState{at: s.Window.next - Seq(s.Unapplied), state: s.Base}
}

// Timeline returns that of the snapshot's revisions.
func (s *Snapshot) Timeline() store.Timeline {
	return store.Timeline{StoreID: s.StoreID, Epoch: s.Epoch}
}

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
