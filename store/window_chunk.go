package store

import (
	"time"
	"unsafe"
)

// chunk is a run of events in a window. Readers read first, and the slots of
// events that their view covers: the writer fills each slot once, before it makes
// a view that covers it. Only the writer uses the other fields.
type chunk struct {
	// first is the position of events[0]. Readers know the number of filled slots
	// from the next chunk's first, or from their view's end.
	first Seq
	// events has a fixed length, its capacity.
	events []Event

	// used is the number of filled slots. bytes is the size of the slots, and of
	// the objects that only the chunk's events keep alive.
	used  int
	bytes int64
	// newest is when the last event was appended, by Window.clock.
	newest time.Time
}

// minChunkSize is the events of a window's first chunk.
const minChunkSize = 8

// last returns the last event. A chunk has at least one.
func (c *chunk) last() Event { return c.events[c.used-1] }

// The sizes that a window counts besides the values of objects.
const (
	chunkBytes  = int64(unsafe.Sizeof(chunk{}))
	eventBytes  = int64(unsafe.Sizeof(Event{}))
	headerBytes = int64(unsafe.Sizeof(Object{}))
	fieldBytes  = int64(unsafe.Sizeof(""))
)

// maxSize bounds the estimate for one object, so that sums of wrong estimates do
// not overflow.
const maxSize = 1 << 40

// heldBytes returns the bytes that only the window keeps alive from ev on: those of the
// object that ev replaces or deletes, or of an emitted value.
func (w *Window) heldBytes(ev Event) int64 {
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

// objectBytes returns the bytes of o that it does not share with its successor.
func (w *Window) objectBytes(o, successor *Object) int64 {
	if o == nil {
		return 0
	}
	return min(max(0, int64(w.sizeOf(o))), maxSize) + ownBytes(o, successor)
}

// ownBytes returns the bytes of o's header, and of its key and fields unless they are its
// successor's too. A nil successor shares nothing.
func ownBytes(o, successor *Object) int64 {
	n := headerBytes
	if successor == nil || unsafe.StringData(o.Key) != unsafe.StringData(successor.Key) {
		n += int64(len(o.Key))
	}
	if successor == nil || !sameSlice(o.Fields, successor.Fields) {
		n += int64(len(o.Fields)) * fieldBytes
	}
	return n
}

// gap is a range of revisions that the cache has not seen: a relist replaced the
// changes between after and through by their difference, the events at the
// positions from start to end. The states at revisions strictly between are
// unknown.
type gap struct {
	after, through Revision
	start, end     Seq
	// found is when the relist was applied, by Window.clock.
	found time.Time
}

// hides reports whether rev is strictly inside the gap.
func (g gap) hides(rev Revision) bool { return g.after < rev && rev < g.through }
