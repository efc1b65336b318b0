package window

import (
	"time"
	"unsafe"

	"github.com/watchmill/watchmill/store"
)

// chunk is a run of events in a window. Readers read first, and the slots of
// events that their view covers: the writer fills each slot once, before it makes
// a view that covers it. Only the writer uses the other fields.
type chunk struct {
	// first is the position of events[0]. Readers know the number of filled slots
	// from the next chunk's first, or from their view's end.
	first Seq
	// events has a fixed length, its capacity.
	events []store.Event

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
func (c *chunk) last() store.Event { return c.events[c.used-1] }

// The sizes that a window counts besides those of objects.
const (
	chunkBytes = int64(unsafe.Sizeof(chunk{}))
	eventBytes = int64(unsafe.Sizeof(store.Event{}))
	// goneBytes is the header of a deletion's object, which shares the rest.
	goneBytes = int64(unsafe.Sizeof(store.Object{}))
)

// heldBytes returns the bytes that only the window keeps alive from ev on: those of the
// object that ev replaces or deletes, or of an emitted value.
func (w *Window) heldBytes(ev store.Event) int64 {
	switch ev.Type {
	case store.Emitted:
		return store.BytesBeside(ev.Object, nil, w.sizeOf)
	case store.Deleted:
		return goneBytes + store.BytesBeside(ev.Prev, ev.Object, w.sizeOf)
	case store.Modified:
		return store.BytesBeside(ev.Prev, ev.Object, w.sizeOf)
	}
	return 0
}

// gap is a range of revisions that the cache has not seen: a relist replaced the
// changes between after and through by their difference, the events at the
// positions from start to end. The states at revisions strictly between are
// unknown.
type gap struct {
	after, through store.Revision
	start, end     Seq
	// found is when the relist was applied, by Window.clock.
	found time.Time
}

// hides reports whether rev is strictly inside the gap.
func (g gap) hides(rev store.Revision) bool { return g.after < rev && rev < g.through }
