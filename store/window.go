package store

import (
	"slices"
	"time"
)

// Seq is a position in a [Window]: the number of events that were appended
// before it since the window was made. It never goes back, also over Reset. It
// lies between events: position n is before the event that was appended as the
// n-th, counted from zero.
type Seq uint64

// Window is the log of the recent changes, for watches to start in and to catch
// up from. It is a list of chunks of a fixed size:
//
//	         floor                                     gap          revision
//	           │   ┌──────────────┐┌──────────────┐┌────╌╌╌───┐          │
//	forgotten  │   │ events 12…15 ││ events 16…19 ││ 20 21 22 │◀─ Append │
//	           │   └──────────────┘└──────────────┘└──────────┘          │
//	               ▲ First                                     ▲ Next
//
// An event knows the object before it, so any state that the window reaches back
// to is the newest with the events since undone; see [Snapshot.StateAt].
//
// A chunk's slots are written once and then only read. [Window.View] is a list
// of chunks and a position to end at, so it takes O(1), needs no lock, and
// never changes. What is dropped is garbage as soon as no view shows it. A
// position is a number: a watcher that stalls keeps nothing alive, and finds
// out that it is too late when it comes back.
//
// Time is what Append and Trim are told. It may jump: the window's clock is the
// latest time that it was told and stands still until that is passed. So events
// can get older than [WindowLimits.MinAge] then, but not go before it.
//
// A Window belongs to one goroutine at a time. Its views are for everybody.
type Window struct {
	limits WindowLimits
	sizeOf func(*Object) int

	// chunks and gaps are shared with views: nothing in them changes, they are
	// only appended to, and replaced to drop something.
	chunks []*chunk
	gaps   []gap

	// rebuilt is shared with views, and guards itself.
	rebuilt *rebuiltStates

	first, next     Seq
	floor, revision Revision
	bytes           int64
	clock           time.Time
}

// NewWindow returns an empty window: nothing is known before [Window.Reset].
// Limits that [WindowLimits.Validate] rejects count as not given. sizeOf
// estimates the bytes of an object's value, as [Schema].Size does; nil means
// [DefaultSize] for each. It is called at most once for each event, for the
// object that the window alone keeps alive from then on.
func NewWindow(limits WindowLimits, sizeOf func(*Object) int) *Window {
	if sizeOf == nil {
		sizeOf = func(*Object) int { return DefaultSize }
	}
	return &Window{limits: limits.withDefaults(), sizeOf: sizeOf, rebuilt: new(rebuiltStates)}
}

// Reset forgets all events. The window then starts at floor: a watch can start
// from there and later. Positions go on from where they were, so those before
// the last event are too old now. One at the very end is not: whoever holds
// positions over a Reset must know of it by other means, such as a generation.
func (w *Window) Reset(floor Revision) {
	w.chunks, w.gaps, w.bytes = nil, nil, 0
	w.rebuilt = new(rebuiltStates)
	w.first = w.next
	w.floor, w.revision = floor, floor
}

// Append adds one event, which came at time at. Its Prev is the state before it,
// which past states are rebuilt from.
//
// Events come in the order of their revisions, each once. One with a lower
// revision than [WindowView.Revision] gets that, to keep the order. A bookmark
// is the same as [Window.Advance].
//
// It takes amortized O(1). It does not trim: call [Window.Trim] once per batch.
func (w *Window) Append(ev Event, at time.Time) {
	if ev.Object == nil {
		w.Advance(ev.Revision)
		return
	}
	held := w.held(ev) // runs code of the user's, so nothing has changed yet
	w.see(at)
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

// AppendDiff adds what a list of the state at revision through differs in from
// the state before, which was that at revision after: events, as [Diff] returns
// them.
//
// The revisions strictly between after and through become a gap: nobody knows
// the states there. A watch cannot start in it, but goes through it as through
// other events, and can start from after and from through. There is a gap also
// if there are no events, for something may have come and gone.
func (w *Window) AppendDiff(events []Event, after, through Revision, at time.Time) {
	w.Advance(after)
	w.see(at)
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

// Advance says that nothing happened until rev that is not in the window. A
// revision that is not newer than [WindowView.Revision] does nothing.
func (w *Window) Advance(rev Revision) { w.revision = max(w.revision, rev) }

// tail returns the chunk that the next event goes into, a new one if the last is
// full. The first chunks are small, so that a window of few events is.
func (w *Window) tail() *chunk {
	if n := len(w.chunks); n > 0 {
		if last := w.chunks[n-1]; last.used < len(last.events) && last.bytes < w.limits.maxChunkBytes() {
			return last
		}
	}
	slots := min(w.limits.ChunkSize, max(minChunkSize, int(w.next-w.first)))
	c := &chunk{first: w.next, events: make([]Event, slots), bytes: chunkBytes + int64(slots)*eventBytes}
	w.chunks = append(w.chunks, c)
	w.bytes += c.bytes
	return c
}

// see moves the clock on to t, never back.
func (w *Window) see(t time.Time) {
	if t.After(w.clock) {
		w.clock = t
	}
}

// View returns the window as it is now, for good. It takes O(1) and does not
// allocate.
func (w *Window) View() WindowView {
	return WindowView{
		chunks: w.chunks, gaps: w.gaps,
		first: w.first, next: w.next,
		floor: w.floor, revision: w.revision,
		bytes: w.bytes, rebuilt: w.rebuilt,
	}
}

// Trim drops what the limits do not keep at time now, and returns how many
// events that was. It takes O(1) if there is nothing to drop, else O(chunks). It
// works also when nothing is appended any more: an idle window becomes empty.
func (w *Window) Trim(now time.Time) (dropped int) { return w.TrimRead(now, w.next) }

// TrimRead is Trim where the events from position unread on have a reader who is
// still to come: they stay, whatever their age, up to a million events or 256 MiB
// in all, or to what the limits allow if that is more.
func (w *Window) TrimRead(now time.Time, unread Seq) (dropped int) {
	w.see(now)
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

// exceeded reports whether the limits want the chunk c to go, with which there
// are left events and bytes. The last chunk goes for its age alone.
func (w *Window) exceeded(left int, bytes int64, c *chunk, unread Seq) bool {
	isTail := left == c.used
	if c.first+Seq(c.used) > unread {
		return !isTail && (left > max(w.limits.MaxEvents, DefaultMaxEvents) || bytes > max(w.limits.MaxBytes, DefaultMaxBytes))
	}
	return w.old(c.newest) || !isTail && (left > w.limits.MaxEvents || bytes > w.limits.MaxBytes)
}

// old reports whether what came at time t need not stay for its age.
func (w *Window) old(t time.Time) bool { return w.clock.Sub(t) >= w.limits.MinAge }

// joinGaps makes one of gaps that have no events between them, once the later
// one is old. Otherwise storage that is listed again and again while nothing
// changes would leave a gap each time, and the window would never forget them.
func (w *Window) joinGaps() {
	if len(w.gaps) < 2 {
		return
	}
	joined := make([]gap, 0, len(w.gaps))
	for _, g := range w.gaps {
		if n := len(joined); n > 0 && joined[n-1].end == g.start && w.old(g.found) {
			g.after, g.start = joined[n-1].after, joined[n-1].start
			joined = joined[:n-1]
		}
		joined = append(joined, g)
	}
	w.gaps = joined
}

// Compact forgets the revisions before rev, those above [WindowView.Revision]
// counting as that, and returns how many events it dropped. Watches cannot start
// from before rev any more, though the events of a chunk that reaches beyond rev
// can still be read by position.
func (w *Window) Compact(rev Revision) (dropped int) {
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

// drop forgets the first n chunks. Views have the old lists, so it makes new
// ones: those would keep the chunks alive for as long as the window lives.
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

// raiseFloor makes rev the oldest revision to start from, or the end of the gap
// that it is in. It does not lower the floor.
func (w *Window) raiseFloor(rev Revision) {
	rev = max(rev, w.floor)
	for _, g := range w.gaps {
		if g.hides(rev) {
			rev = g.through
		}
	}
	w.floor = rev
	w.gaps = slices.DeleteFunc(slices.Clone(w.gaps), func(g gap) bool { return g.through <= rev })
}
