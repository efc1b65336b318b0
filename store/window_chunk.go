package store

import (
	"time"
	"unsafe"
)

// chunk is a run of events in a window. Readers read first, and the slots of
// events that their view covers: the writer fills each slot once, before the view
// that covers it is made. The other fields are the writer's alone.
type chunk struct {
	// first is the position of events[0]. How many slots are filled, readers see
	// in the next chunk's first, or in where their view ends.
	first Seq
	// events has a fixed length, its capacity.
	events []Event

	// used is the number of filled slots. bytes is what the chunk keeps alive:
	// its slots, and the objects that nothing but its events holds.
	used  int
	bytes int64
	// newest is when the last event came, by Window.clock.
	newest time.Time
}

// minChunkSize is the events of a window's first chunk.
const minChunkSize = 8

// last returns the last event. There is one: a chunk is made for an event.
func (c *chunk) last() Event { return c.events[c.used-1] }

// What a window counts beside the values of objects.
const (
	chunkBytes  = int64(unsafe.Sizeof(chunk{}))
	eventBytes  = int64(unsafe.Sizeof(Event{}))
	headerBytes = int64(unsafe.Sizeof(Object{}))
	// labelBytes is what a label takes in a map of its own, for its share of it
	// and two strings' headers.
	labelBytes = 48
	fieldBytes = int64(unsafe.Sizeof(""))
)

// maxSize is as large as an object can be said to be, so that sums of estimates
// that are out of all reason stay sums.
const maxSize = 1 << 40

// held returns the bytes of what only the window keeps alive from ev on: the
// object that ev takes out of the state, or that never was state.
func (w *Window) held(ev Event) int64 {
	switch ev.Type {
	case Emitted:
		return w.objectBytes(ev.Object, nil)
	case Deleted:
		return headerBytes + w.objectBytes(ev.Prev, ev.Object)
	case Modified:
		return w.objectBytes(ev.Prev, ev.Object)
	}
	return 0
}

// objectBytes returns the bytes of o without what it shares with its successor.
func (w *Window) objectBytes(o, successor *Object) int64 {
	if o == nil {
		return 0
	}
	return min(max(0, int64(w.sizeOf(o))), maxSize) + ownBytes(o, successor)
}

// ownBytes returns the bytes of o's header, and of its key, labels and fields
// unless they are its successor's too. A nil successor shares nothing.
func ownBytes(o, successor *Object) int64 {
	n := headerBytes
	if successor == nil || unsafe.StringData(o.Key) != unsafe.StringData(successor.Key) {
		n += int64(len(o.Key))
	}
	if successor == nil || !sameMap(o.Labels, successor.Labels) {
		n += int64(len(o.Labels)) * labelBytes
	}
	if successor == nil || !sameSlice(o.Fields, successor.Fields) {
		n += int64(len(o.Fields)) * fieldBytes
	}
	return n
}

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
