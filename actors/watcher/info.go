package watcher

import (
	"sort"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/window"
)

// Info describes a watch at one moment.
type Info struct {
	// Name is the watch's name.
	Name string
	// Filter is the watch's filter; nil is everything.
	Filter *store.Filter
	Policy Policy
	// Consumer is how the watch is consumed: "pull", "channel", "handler" or
	// "source"; "" before its first use.
	Consumer string
	// Revision is the consumer's revision; see [Watch.Revision].
	Revision store.Revision
	// Lag and Behind are how far the consumer is behind; see [Watch.Lag] and
	// [Watch.Behind].
	Lag    uint64
	Behind time.Duration
	// Delivered and Lost are as of [Watch.Delivered] and [Watch.Lost].
	Delivered, Lost uint64
	// Age is how long ago the watch was made. Setting the machine's clock does not change it;
	// by a clock without monotonic readings that is set back it may be zero.
	Age time.Duration
	// StalledSince is when the watch became stalled; zero if it is not.
	StalledSince time.Time
}

var consumerNames = map[consumerKind]string{byPull: "pull", byChannel: "channel", byHandler: "handler", byNotify: "source"}

// Info describes the watch at the time now.
func (w *Watch) Info(now time.Time) Info {
	revision := w.Revision()
	w.mu.Lock()
	defer w.mu.Unlock()
	info := Info{
		Name: w.name.String(), Policy: w.policy, Consumer: consumerNames[consumerKind(w.kind.Load())],
		Revision: revision, Delivered: w.delivered.Load(), Age: max(w.feed.elapsed(now)-w.began, 0),
	}
	if w.stream != nil {
		info.Filter = w.stream.Filter()
	}
	if w.extras != nil {
		info.Lost = w.extras.lost
		if w.flags.has(stalled) {
			info.StalledSince = w.extras.stalledAt
		}
	}
	if w.reading() {
		var oldest time.Time
		info.Lag, oldest = w.unread()
		info.Behind = since(oldest, now)
	} else {
		info.Lag = w.lag()
	}
	return info
}

// Name returns the watch's name, by default the place where it was made.
func (w *Watch) Name() string { return w.name.String() }

// Behind returns the age of the oldest event that the consumer has not received, or
// its handler not handled; zero if there is none. While the watch delivers its
// initial state, it is the age of the watch. So a stuck consumer shows even if few
// events are pending.
func (w *Watch) Behind() time.Duration {
	now := w.feed.now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.reading() {
		return 0
	}
	_, oldest := w.unread()
	return since(oldest, now)
}

func since(t, now time.Time) time.Duration {
	if t.IsZero() {
		return 0
	}
	return max(now.Sub(t), 0)
}

// unread returns how many events are ahead of the consumer, and when the oldest of
// them was committed. The caller holds the lock, and the watch is reading.
func (w *Watch) unread() (n uint64, oldest time.Time) {
	snap := w.feed.Load()
	note := func(events []store.Event) {
		// The time of a deletion may be unknown.
		for i := 0; i < len(events) && oldest.IsZero() && events[i].Object != nil; i++ {
			oldest = events[i].Object.Written
		}
	}
	if w.resume.Load() == 0 { // the initial state is incomplete, or its end in the consumer's hands
		oldest = w.feed.origin.Add(w.began)
	} else {
		inHand := w.inHand(snap)
		note(inHand)
		n = uint64(len(inHand))
	}
	note(w.cur.upcoming(w.stream, snap))
	if oldest.IsZero() && w.feed.Newest != nil {
		newest := w.feed.Newest()
		note(w.stream.firstIn(newest.Window, newest.Window.After(snap.Revision)))
	}
	return n + w.cur.ahead(w.stream, snap) + w.feed.undispatched(snap), oldest
}

// inHand returns the events that were taken but not given to the consumer, or not
// handled by its handler. It searches the window for them, so that deliveries need no
// bookkeeping until they leave it. Before a backlog it returns only what is held, or has
// left the window.
func (w *Watch) inHand(snap *window.Snapshot) []store.Event {
	resume := store.Revision(w.resume.Load())
	if w.extras != nil && len(w.extras.held) > 0 {
		return w.extras.held
	}
	if w.extras != nil && len(w.extras.inHand) > 0 {
		return beyond(w.extras.inHand, resume)
	}
	if resume == 0 || resume >= w.cur.rev || w.cur.backlog != nil {
		return nil
	}
	if w.cur.node != nil {
		return beyond(w.cur.node.events, resume)
	}
	var events []store.Event
	for at := snap.Window.After(resume); at < w.cur.pos; {
		raw, ok := snap.Window.Read(at)
		if !ok || len(raw) == 0 {
			break
		}
		raw = raw[:min(len(raw), int(w.cur.pos-at))]
		events = append(events, ConvertBatch(w.stream.schema, w.stream.filter, raw)...)
		at += window.Seq(len(raw))
	}
	return beyond(events, resume)
}

// beyond returns the events that come after a revision.
func beyond(events []store.Event, rev store.Revision) []store.Event {
	return events[sort.Search(len(events), func(i int) bool { return events[i].Revision > rev }):]
}

// scanLimit bounds how many events are examined to find the next one for a watch
// that scans the window. Beyond it, any event counts.
const scanLimit = 1024

// upcoming returns the events that the cursor would read next of snap, without
// moving; at least the first, if there is one.
func (c *cursor) upcoming(s *Stream, snap *window.Snapshot) []store.Event {
	if c.backlog != nil && len(c.backlog.events) > 0 {
		return c.backlog.events[0]
	}
	if c.node != nil {
		if next := c.node.next.Load(); next != nil {
			return next.events
		}
		return nil
	}
	return s.firstIn(snap.Window, c.pos)
}

// firstIn returns events of the stream that the window has from a position on, at
// least the first, if there is one.
func (s *Stream) firstIn(w window.View, from window.Seq) []store.Event {
	for at := max(from, w.First()); at < w.Next(); {
		raw, ok := w.Read(at)
		if !ok || len(raw) == 0 {
			return nil
		}
		if found := ConvertBatch(s.schema, s.filter, raw); len(found) > 0 {
			return found
		}
		if at += window.Seq(len(raw)); at-from > scanLimit {
			return raw
		}
	}
	return nil
}
