package window

import (
	"slices"
	"time"

	"github.com/watchmill/watchmill/store"
)

// Seq is a position in a [Window]: the number of events that were appended before
// it since the window was made. It never decreases, not even by Reset. Positions
// are between events: position n is before the n-th event, counted from zero.
type Seq uint64

// Window is the log of the recent changes, from which watches start and catch up.
// It is a list of chunks of a fixed size:
//
//	         floor                                     gap          revision
//	           │   ┌──────────────┐┌──────────────┐┌────╌╌╌───┐          │
//	dropped    │   │ events 12…15 ││ events 16…19 ││ 20 21 22 │◀─ Append │
//	           │   └──────────────┘└──────────────┘└──────────┘          │
//	               ▲ First                                     ▲ Next
//
// An event has its previous object, so a past state within the window is computed
// from the newest by undoing events; see [Snapshot.StateAt].
//
// A chunk's slots are written once and then only read. [Window.View] is a list of
// chunks and an end position, so it takes O(1), needs no lock, and never changes.
// Dropped chunks are garbage as soon as no view has them. A position is a number:
// a stalled watcher keeps nothing alive, and learns at its next read that its
// position has been trimmed.
//
// Append and Trim are given the time. The window's clock is the latest time given, and
// never goes back: events of a clock that is set back stay longer than
// [Limits.MinAge], and all those before a jump ahead are older by that. Times
// with a monotonic reading, such as those of [time.Now], do not jump.
//
// A Window is for one goroutine at a time. Its views are safe for concurrent use.
type Window struct {
	limits Limits
	sizeOf func(*store.Object) int

	// chunks and gaps are shared with views: their elements do not change; they are
	// only appended to, and replaced as a whole to drop elements.
	chunks []*chunk
	gaps   []gap

	// rebuilt is shared with views and has its own lock.
	rebuilt *rebuiltStates

	first, next     Seq
	floor, revision store.Revision
	bytes           int64
	clock           time.Time
}

// New returns an empty window, which has no revision before [Window.Reset].
// Limits that [Limits.Validate] rejects are ignored. sizeOf estimates the
// bytes of an object's value, as [store.Schema].Size does; nil means [store.DefaultSize] for
// each. It is called at most once for each event, for the object that only the
// window keeps alive from then on.
func New(limits Limits, sizeOf func(*store.Object) int) *Window {
	if sizeOf == nil {
		sizeOf = func(*store.Object) int { return store.DefaultSize }
	}
	return &Window{limits: limits.WithDefaults(), sizeOf: sizeOf, rebuilt: new(rebuiltStates)}
}

// Reset drops all events. The window then starts at floor, the oldest revision
// that a watch can start from. Positions continue, so those before the last event
// are too old now. One at the very end is not: holders of positions must detect a
// Reset by other means, such as an epoch.
func (w *Window) Reset(floor store.Revision) {
	w.chunks, w.gaps, w.bytes = nil, nil, 0
	w.rebuilt = new(rebuiltStates)
	w.first = w.next
	w.floor, w.revision = floor, floor
}

// Append adds one event, received at time at. Its Prev is the state before it,
// from which past states are rebuilt.
//
// Events come in the order of their revisions, each once. One with a lower
// revision than [View.Revision] gets that, to keep the order. A bookmark
// is the same as [Window.Advance].
//
// It takes amortized O(1). It does not trim: call [Window.Trim] once per batch.
func (w *Window) Append(ev store.Event, at time.Time) {
	if ev.Object == nil {
		w.Advance(ev.Revision)
		return
	}
	held := w.heldBytes(ev) // runs user code, so it precedes all changes
	w.advanceClock(at)
	w.Advance(ev.Revision)
	ev.Revision = w.revision
	tail := w.tail()
	tail.events[tail.used] = ev
	tail.used++
	tail.bytes += held
	tail.newest = w.clock
	w.next++
	w.bytes += held
}

// AppendDiff adds events, the [tree.Diff] between the state at revision after and a
// list at revision through.
//
// The revisions strictly between after and through become a gap, whose states are
// unknown. A watch cannot start in the gap, but can pass it, and can start from
// after and from through. There is a gap even without events, since an object may
// have been created and deleted meanwhile.
func (w *Window) AppendDiff(events []store.Event, after, through store.Revision, at time.Time) {
	w.Advance(after)
	w.advanceClock(at)
	g := gap{after: w.revision, start: w.next, found: w.clock}
	for _, ev := range events {
		w.Append(ev, at)
	}
	w.Advance(through)
	g.through, g.end = w.revision, w.next
	if g.through > g.after+1 {
		w.gaps = append(w.gaps, g)
	}
}

// Advance records that the window is complete up to rev. A revision that is not
// newer than [View.Revision] has no effect.
func (w *Window) Advance(rev store.Revision) { w.revision = max(w.revision, rev) }

// tail returns the chunk for the next event, a new one if the last is full. The
// first chunks are small, so that a window of few events takes little memory.
func (w *Window) tail() *chunk {
	if n := len(w.chunks); n > 0 {
		if last := w.chunks[n-1]; last.used < len(last.events) && last.bytes < w.limits.maxChunkBytes() {
			return last
		}
	}
	slots := min(w.limits.ChunkSize, max(minChunkSize, int(w.next-w.first)))
	c := &chunk{first: w.next, events: make([]store.Event, slots), bytes: chunkBytes + int64(slots)*eventBytes}
	w.chunks = append(w.chunks, c)
	w.bytes += c.bytes
	return c
}

// advanceClock moves the clock on to t, never back.
func (w *Window) advanceClock(t time.Time) {
	if t.After(w.clock) {
		w.clock = t
	}
}

// View returns an immutable snapshot of the window. It takes O(1) and does not
// allocate.
func (w *Window) View() View {
	return View{
		chunks: w.chunks, gaps: w.gaps,
		first: w.first, next: w.next,
		floor: w.floor, revision: w.revision,
		bytes: w.bytes, rebuilt: w.rebuilt,
	}
}

// Next returns the position after the last event, that of [View.Next].
func (w *Window) Next() Seq { return w.next }

// Trim drops the events that exceed the limits at time now, and returns their
// number. If there is nothing to drop it looks only at the gaps, which are as few as
// relists, and does not allocate; else it takes O(chunks). An idle window becomes empty in
// the end.
func (w *Window) Trim(now time.Time) (dropped int) { return w.TrimRead(now, w.next) }

// TrimRead is Trim, but keeps the events from position unread on for a pending
// reader, whatever their age, up to a million events or 256 MiB in all, or to the
// limits if those are larger.
func (w *Window) TrimRead(now time.Time, unread Seq) (dropped int) {
	w.advanceClock(now)
	n, bytes := 0, w.bytes
	for ; n < len(w.chunks); n++ {
		c := w.chunks[n]
		left := int(w.next - c.first)
		if !w.exceeded(left, bytes, c, unread) || left-c.used < w.limits.MinEvents {
			break
		}
		dropped += c.used
		bytes -= c.bytes
	}
	w.drop(n)
	w.joinGaps()
	return dropped
}

// exceeded reports whether the limits require dropping the chunk c, with which
// there are left events and bytes. Only its age can drop the last chunk.
func (w *Window) exceeded(left int, bytes int64, c *chunk, unread Seq) bool {
	isTail := left == c.used
	if c.first+Seq(c.used) > unread {
		return !isTail && (left > max(w.limits.MaxEvents, DefaultMaxEvents) || bytes > max(w.limits.MaxBytes, DefaultMaxBytes))
	}
	return w.old(c.newest) || !isTail && (left > w.limits.MaxEvents || bytes > w.limits.MaxBytes)
}

// old reports whether t is at least MinAge ago.
func (w *Window) old(t time.Time) bool { return w.clock.Sub(t) >= w.limits.MinAge }

// joinGaps merges gaps that have no events between them, once the later one is
// old. Otherwise repeated relists without changes would accumulate gaps that the
// window never drops.
func (w *Window) joinGaps() {
	for i := 1; i < len(w.gaps); i++ {
		if before, g := w.gaps[i-1], w.gaps[i]; before.end == g.start && w.old(g.found) {
			g.after, g.start = before.after, before.start
			w.gaps = slices.Concat(w.gaps[:i-1], []gap{g}, w.gaps[i+1:])
			i--
		}
	}
}

// Compact drops the revisions before rev (at most [View.Revision]) and
// returns how many events it dropped. Watches cannot start from before rev any
// more, though the earlier events of the chunk with rev can still be read by
// position.
func (w *Window) Compact(rev store.Revision) (dropped int) {
	rev = min(rev, w.revision)
	n := 0
	for n < len(w.chunks)-1 && w.chunks[n].last().Revision <= rev {
		dropped += w.chunks[n].used
		n++
	}
	w.drop(n)
	w.raiseFloor(rev)
	return dropped
}

// RaiseFloor makes rev (at most [View.Revision]) the oldest revision that a watch can
// start from, if it is newer than that. The events before it stay, for those that read them
// by position.
func (w *Window) RaiseFloor(rev store.Revision) { w.raiseFloor(min(rev, w.revision)) }

// drop drops the first n chunks. It copies the lists, since subslices of the old
// ones would keep the dropped chunks alive.
func (w *Window) drop(n int) {
	if n == 0 {
		return
	}
	floor := w.floor
	for _, c := range w.chunks[:n] {
		w.bytes -= c.bytes
		w.first = c.first + Seq(c.used)
		floor = max(floor, c.last().Revision)
	}
	w.chunks = slices.Clone(w.chunks[n:])
	w.rebuilt.forget(w.first)
	w.raiseFloor(floor)
}

// raiseFloor makes rev, or the end of a gap around it, the oldest revision to
// start from. It does not lower the floor.
func (w *Window) raiseFloor(rev store.Revision) {
	rev = max(rev, w.floor)
	for _, g := range w.gaps {
		if g.hides(rev) {
			rev = g.through
		}
	}
	w.floor = rev
	w.gaps = slices.DeleteFunc(slices.Clone(w.gaps), func(g gap) bool { return g.through <= rev })
}

// Rewind restores the window to the view v, after a writer failed and may have
// left it half changed. Later events are dropped; other views stay valid.
func (w *Window) Rewind(v View) {
	w.chunks, w.gaps = slices.Clone(v.chunks), slices.Clone(v.gaps)
	w.first, w.next = v.first, v.next
	w.floor, w.revision = v.floor, v.revision
	w.bytes, w.rebuilt = v.bytes, new(rebuiltStates)
	if len(w.chunks) == 0 {
		return
	}
	// The last chunk may have slots filled after v, which a copy does not have.
	last := len(w.chunks) - 1
	tail := *w.chunks[last]
	tail.events = make([]store.Event, len(tail.events))
	tail.used = copy(tail.events, v.filled(last))
	tail.bytes = v.bytes
	for _, c := range w.chunks[:last] {
		tail.bytes -= c.bytes
	}
	w.chunks[last] = &tail
}
