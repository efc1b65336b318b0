package store

import "time"

// chunk is a run of events in a window. Readers read base, first, and the slots
// of events that their view covers: the writer fills each slot once, before the
// view that covers it is made. The other fields are the writer's alone.
type chunk struct {
	// first is the position of events[0]. How many slots are filled, readers see
	// in the next chunk's first, or in where their view ends.
	first Seq
	// base is the state before events[0].
	base *TreeView
	// events has a fixed length, its capacity.
	events []Event

	// used is the number of filled slots, bytes the size of their objects.
	used  int
	bytes int64
	// newest is when the last event came, by Window.clock.
	newest time.Time
}

// last returns the last event. There is one: a chunk is made for an event.
func (c *chunk) last() Event { return c.events[c.used-1] }

// gap is a run of revisions that nobody saw: a list replaced the changes
// between after and through by their outcome, which is the events at the
// positions from start to end. Revisions strictly between are not states that
// ever were.
type gap struct {
	after, through Revision
	start, end     Seq
	// found is when the list came, by Window.clock.
	found time.Time
}

// hides reports whether rev is one of the revisions that nobody saw.
func (g gap) hides(rev Revision) bool { return g.after < rev && rev < g.through }

// roll applies events to a state. Emitted events and bookmarks are not state.
func roll(t *Tree, events []Event) {
	for _, ev := range events {
		switch ev.Type {
		case Added, Modified:
			t.Put(ev.Object)
		case Deleted:
			t.Delete(ev.Object.Key)
		}
	}
}
