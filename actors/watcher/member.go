package watcher

import (
	"math"
	"time"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/store"
)

// Member is a watch as the dispatcher sees it. Its methods are the dispatcher's
// to call, unless they say otherwise.
type Member Watch

// noMember is the memberIndex of a watch that is no stream's member.
const noMember = math.MaxUint32

// Start is where a watch begins. The watchCache decides it.
type Start struct {
	// Next is the position of the first event to look at.
	Next store.Seq
	// After is the revision that the position stands for: everything up to it is
	// known to the consumer, or comes with State.
	After store.Revision
	// Pending, if not zero, is a revision in the future after which the watch is to
	// start. Next and After then say nothing.
	Pending store.Revision
	// State is delivered first, as Added events; nil for none.
	State *store.TreeView
	// InitialEnd asks for the bookmark that closes State, at revision After.
	InitialEnd bool
}

func (m *Member) watch() *Watch { return (*Watch)(m) }

// Asked returns what the watch was made with, until it begins. The watchCache may
// call it, too.
func (m *Member) Asked() *Options { return m.asked }

// Begin sets the watch on stream at start.
func (m *Member) Begin(stream *Stream, start Start) {
	w := m.watch()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stream, w.asked = stream, nil
	if w.flags.has(ended) {
		return // it ended on its way here, and is to hold on to nothing
	}
	w.feed.Registry.add(w)
	if w.pending = start.Pending > 0; w.pending {
		w.resume.Store(uint64(start.Pending))
		return
	}
	w.begin(start)
}

// begin places the cursor. The caller holds the lock.
func (w *Watch) begin(start Start) {
	w.cur = cursor{pos: start.Next, rev: start.After}
	w.taken.Store(w.stream.count(start.Next))
	if start.State == nil && !start.InitialEnd {
		w.resume.Store(uint64(start.After))
		return
	}
	w.cur.initial = &initialEvents{state: start.State, revision: start.After, bookmark: start.InitialEnd}
	if w.policy == Conflate {
		w.cur.backlog = &backlog{base: start.State}
	}
}

// Arrive has a watch that was pending begin at a position of the window: the
// revision after which it starts has come.
func (m *Member) Arrive(next store.Seq, after store.Revision) {
	w := m.watch()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pending {
		w.pending = false
		w.begin(Start{Next: next, After: after})
	}
}

// Box returns the mailbox of the watch's actor, nil if it has none: only those
// with a handler have.
func (m *Member) Box() *actors.WakeBox {
	if consumerKind(m.kind.Load()) != byHandler {
		return nil // its target is set when its consumer first waits
	}
	return &m.target.(*handler).box
}

// Spawn starts the watch's actor on the executor. There must be one.
func (m *Member) Spawn(ctx *actors.Context, executor actors.Executor) error {
	h := m.target.(*handler)
	return actors.SpawnWake(ctx, h, &h.box, executor)
}

// Signal has the consumer look at the watch. For one with a handler, waking its
// Box together with others is cheaper.
func (m *Member) Signal() {
	w := m.watch()
	w.mu.Lock()
	target := w.target
	w.mu.Unlock()
	if target != nil {
		target.signal()
	}
}

// Notified reports whether the watch was made by [NewNotified].
func (m *Member) Notified() bool { return consumerKind(m.kind.Load()) == byNotify }

// OnPool reports whether the handler's turns are to run on the pool.
func (m *Member) OnPool() bool { return m.traits.has(onPool) }

// Stream returns the stream that the watch was begun on.
func (m *Member) Stream() *Stream { return m.stream }

// Policy returns what happens to the watch if it stays stalled.
func (m *Member) Policy() Policy { return m.policy }

// Bookmarks reports whether the watch asks for bookmarks.
func (m *Member) Bookmarks() bool { return m.traits.has(bookmarks) }

// Deadline returns when the watch ends; zero is never.
func (m *Member) Deadline() (at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.extras != nil {
		at = m.extras.deadline
	}
	return at
}

// Waiting reports whether the watch has caught up and its consumer asks for
// more, so that a signal is of use.
func (m *Member) Waiting() bool { return m.flags.has(waiting) }

// ClearWaiting reports whether the watch was waiting, and if so the caller must
// signal it. A watch whose consumer has gone meanwhile stays as it is, so that it
// can be told from one that waits.
func (m *Member) ClearWaiting() bool { return m.flags.clear(waiting) }

// Unread reports whether there is something for the watch to look at in what was
// published.
func (m *Member) Unread() bool {
	w := m.watch()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reading() && (w.cur.initial != nil || w.cur.backlog != nil || !w.cur.exhausted(w.feed.Load()))
}

// Resume returns the revision that the consumer may resume from.
func (m *Member) Resume() store.Revision { return store.Revision(m.resume.Load()) }

// Delivered returns how many events the consumer was given.
func (m *Member) Delivered() uint64 { return m.delivered.Load() }

// Behind reports whether, with next the end of the newest window, the watch
// lags more than its buffer.
func (m *Member) Behind(next store.Seq) bool {
	if m.pending {
		return false
	}
	count, taken := m.stream.count(next), m.taken.Load()
	return count > taken && count-taken > uint64(m.buffer)
}

// SetStalled calls the watch stalled, from at on, until it has caught up. It
// reports whether it was not before.
func (m *Member) SetStalled(at time.Time) bool {
	if !m.flags.set(stalled) {
		return false
	}
	w := m.watch()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.more().stalledAt = at
	return true
}

// Name returns what the watch is called.
func (m *Member) Name() string { return m.name.String() }

// Stalled reports whether the watch has been called stalled and has not caught
// up since.
func (m *Member) Stalled() bool { return m.flags.has(stalled) }

// RequestBookmark makes the watch deliver a bookmark as soon as it has caught
// up. It needs a signal.
func (m *Member) RequestBookmark() { m.flags.set(bookmarkDue) }

// OwesInitialEnd reports whether the bookmark that closes the initial state is
// still to be delivered.
func (m *Member) OwesInitialEnd() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cur.initial.owesBookmark()
}

// leaveStream takes the watch off its stream, which has been evaluated up to
// position at.
func (m *Member) leaveStream(at store.Seq) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cur.leave(at)
}

// Ended reports whether the watch has ended.
func (m *Member) Ended() bool { return m.flags.has(ended) }

// Over reports whether the watch has ended, or is Lost and only hands out what
// it has kept.
func (m *Member) Over() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.flags.has(ended) || m.cur.backlog != nil && m.cur.backlog.end != nil
}

// Err returns why the watch ended, or nil while it has not.
func (m *Member) Err() error { return m.watch().Err() }

// End ends the watch with reason, unless it has ended, and tells its consumer.
// What has not been delivered is dropped. It may be called from anywhere.
func (m *Member) End(reason error) { m.watch().end(reason) }

// EndQuietly is End without telling the consumer: that is left to Signal. It
// reports whether the watch had not ended.
func (m *Member) EndQuietly(reason error) bool {
	w := m.watch()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.finish(reason)
}

// EndAfterInitial ends the watch with reason, quietly: at once, unless the
// initial state is still being delivered; then when that, and the bookmark that
// closes it, are. A consumer that was so close to a usable state need not start
// over.
func (m *Member) EndAfterInitial(reason error) {
	w := m.watch()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.flags.has(ended) && w.cur.initial.owesBookmark() {
		w.more().drainTo, w.more().drainInitial = reason, true
		return
	}
	w.finish(reason)
}

// EndWhenCaughtUp ends the watch with reason once everything that has been
// published is delivered.
func (m *Member) EndWhenCaughtUp(reason error) {
	w := m.watch()
	w.mu.Lock()
	if !w.flags.has(ended) && w.more().drainTo == nil {
		w.more().drainTo = reason
	}
	w.mu.Unlock()
	if m.ClearWaiting() {
		m.Signal()
	}
}
