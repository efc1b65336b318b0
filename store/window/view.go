package window

import (
	"sort"

	"github.com/watchmill/watchmill/store"
)

// View is a [Window] at one moment. It never changes and is safe for
// concurrent use without locks. It is small: pass it by value. The zero value is
// an empty window that starts at revision zero.
//
// It keeps its events alive, so drop it when there is a newer one.
type View struct {
	chunks          []*chunk
	gaps            []gap
	first, next     Seq
	floor, revision store.Revision
	bytes           int64
	rebuilt         *rebuiltStates
}

// First returns the position before the oldest event.
func (v View) First() Seq { return v.first }

// Next returns the position after the newest event, where the next will be.
func (v View) Next() Seq { return v.next }

// Floor returns the oldest revision that a watch can start from.
func (v View) Floor() store.Revision { return v.floor }

// Revision returns the revision up to which the window is complete: that of the
// newest event, or a later one.
func (v View) Revision() store.Revision { return v.revision }

// Len returns the number of events.
func (v View) Len() int { return int(v.next - v.first) }

// Bytes estimates the memory that only the window keeps alive: its events, the
// objects that they replaced or deleted, and the cached past states.
func (v View) Bytes() int64 { return v.bytes + v.rebuilt.bytes() }

// BytesBeside returns the part of [View.Bytes] that other, a window with
// some of the same events, does not keep alive: for a cache's window beside its
// storage's history.
func (v View) BytesBeside(other View) int64 {
	n, left := v.Bytes(), v.bytes
	for i, c := range v.chunks {
		bytes := left // of the last chunk, which may grow meanwhile
		if i+1 < len(v.chunks) {
			bytes = c.bytes
		}
		left -= bytes
		events := v.filled(i)
		if events[0].Revision > other.floor && events[len(events)-1].Revision <= other.revision {
			n -= bytes - chunkBytes - int64(len(c.events))*eventBytes
		}
	}
	return n
}

// Since returns the position before the last n events, or First if there are fewer.
func (v View) Since(n int) Seq {
	return v.next - Seq(min(max(n, 0), v.Len()))
}

// Seek returns the position of the first event with a revision greater than
// from, and Next if from is the newest revision or in the future. It takes
// O(log n).
//
// The error is an [*store.ExpiredError] if events after from have been trimmed, or from
// is in a gap. Its Oldest is then the nearest later revision to start from.
func (v View) Seek(from store.Revision) (Seq, error) {
	if from < v.floor {
		return 0, &store.ExpiredError{Requested: from, Oldest: v.floor}
	}
	for _, g := range v.gaps {
		if g.hides(from) {
			return 0, &store.ExpiredError{Requested: from, Oldest: g.through}
		}
	}
	return v.After(from), nil
}

// After returns the position of the first event with a revision greater than
// rev, or First if that has been trimmed. Unlike [View.Seek] it does not
// check that a watch can start there.
func (v View) After(rev store.Revision) Seq {
	if rev >= v.revision {
		return v.next
	}
	later := sort.Search(len(v.chunks), func(i int) bool { return v.chunks[i].events[0].Revision > rev })
	if later == 0 {
		return v.first
	}
	events := v.filled(later - 1)
	n := sort.Search(len(events), func(i int) bool { return events[i].Revision > rev })
	return v.chunks[later-1].first + Seq(n)
}

// Read returns the events from position at to the end of its chunk, without
// copying, and none if at is Next or beyond. Call it again at the position after
// them for more. The slice is read only.
//
// ok is false if at is before First: the event there has been trimmed. The receiver is a
// pointer, since each delivery calls Read, and copying the view would cost more than reading.
func (v *View) Read(at Seq) (events []store.Event, ok bool) {
	switch {
	case at < v.first:
		return nil, false
	case at >= v.next:
		return nil, true
	}
	i := v.holder(at)
	return v.filled(i)[at-v.chunks[i].first:], true
}

// holder returns the index of the chunk with the event at position at, which is
// in the window. Readers that have caught up read from the last chunk, so it is
// tried first.
func (v *View) holder(at Seq) int {
	if last := len(v.chunks) - 1; v.chunks[last].first <= at {
		return last
	}
	return sort.Search(len(v.chunks), func(i int) bool { return v.chunks[i].first > at }) - 1
}

// filled returns the events of chunk i that this view covers, clipped so that an
// append cannot write to the chunk.
func (v *View) filled(i int) []store.Event {
	c, end := v.chunks[i], v.next
	if i+1 < len(v.chunks) {
		end = v.chunks[i+1].first
	}
	n := end - c.first
	return c.events[:n:n]
}

// event returns the event at position at, which is in the window.
func (v View) event(at Seq) store.Event {
	c := v.chunks[v.holder(at)]
	return c.events[at-c.first]
}

// RevisionAt returns the revision up to which a reader that has consumed all events
// before position at is complete: that of the event before at, Floor before First, and
// Revision at Next or after. At First it is Floor, too, or less if Floor was raised beyond
// the event there.
//
// If the events before and after at have the same revision, it is the number
// below, so that resuming from it repeats some events and misses none. In a gap
// (see [Window.AppendDiff]) no watch can start from it.
func (v View) RevisionAt(at Seq) store.Revision {
	switch {
	case at < v.first:
		return v.floor
	case at >= v.next:
		return v.revision
	}
	rev := v.floor
	if at > v.first {
		rev = max(rev, v.event(at-1).Revision)
	}
	for _, g := range v.gaps {
		if g.end <= at {
			rev = max(rev, g.through)
		}
	}
	return min(rev, v.event(at).Revision-1)
}
