package watcher

import (
	"math"
	"time"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/tree"
	"github.com/watchmill/watchmill/store/window"
)

// Member is the dispatcher's view of a watch. Only the dispatcher may call its
// methods, unless they say otherwise.
type Member Watch

// noMember is the memberIndex of a watch that is not a stream's member.
const noMember = math.MaxUint32

// Start is where a watch begins. The watchCache decides it.
type Start struct {
	// Next is the position of the first event to read.
	Next window.Seq
	// After is the revision of the position: the consumer has everything up to it,
	// or gets it with State.
	After store.Revision
	// Pending, if not zero, is a future revision after which the watch starts. Next
	// and After are then unused.
	Pending store.Revision
	// State is delivered first, as Added events; nil for none.
	State *tree.View
	// InitialEnd requests the bookmark after State, at revision After.
	InitialEnd bool
}

// At returns the start moved to the end of a snapshot, and to its state if it has one.
func (s Start) At(snap *window.Snapshot) Start {
	s.Next, s.After = snap.Window.Next(), snap.Revision
	if s.State != nil {
		s.State = snap.State()
	}
	return s
}

func (m *Member) watch() *Watch { return (*Watch)(m) }

// Begin starts the watch on stream at start.
func (m *Member) Begin(stream *Stream, start Start) {
	w := m.watch()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stream = stream
	if w.flags.has(ended) {
		return // it has ended, and must keep nothing alive
	}
	w.feed.Registry.add(w)
	if w.pending = start.Pending > 0; w.pending {
		w.resume.Store(uint64(start.Pending))
		if reason := w.drainReason(); reason != nil { // it owes nothing yet
			w.finish(reason)
		}
		return
	}
	w.begin(start)
}

// begin sets the cursor. The caller holds the lock.
func (w *Watch) begin(start Start) {
	w.cur = cursor{pos: start.Next, rev: start.After}
	w.taken.Store(w.stream.count(start.Next))
	if start.State == nil && !start.InitialEnd {
		w.resume.Store(uint64(start.After))
		return
	}
	w.cur.initial = &initialEvents{
		state: start.State, revision: start.After, bookmark: start.InitialEnd, count: w.feed.InitialEvents,
		reuse: consumerKind(w.kind.Load()) == byHandler,
	}
	if w.policy == Conflate {
		w.cur.backlog = &backlog{base: start.State}
	}
}

// Arrive starts a pending watch at a position of the window, when its revision has
// been reached.
func (m *Member) Arrive(next window.Seq, after store.Revision) {
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
		return nil // its signal target is set when its consumer first waits
	}
	return &m.target.(*handler).box
}

// Spawn starts the watch's actor on the executor, once. The watch must have a handler.
func (m *Member) Spawn(ctx *actors.Context, executor actors.Executor) {
	h := m.target.(*handler)
	_ = actors.SpawnWake(ctx, h, &h.box, executor) // no error: the box is unused, and an actor that receives does not stop
}

// Signal makes the consumer read the watch. For a watch with a handler, waking its
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

// Progress reports whether the watch asks for a bookmark after each revision without an event.
func (m *Member) Progress() bool { return m.traits.has(progressed) }

// Waiting reports whether the watch has caught up and its consumer asks for
// more, so that a signal is of use.
func (m *Member) Waiting() bool { return m.flags.has(waiting) }

// ClearWaiting clears the waiting flag and reports whether it was set; if so the
// caller must signal the watch. A watch whose consumer does not return is then not
// waiting, and can be found to lag.
func (m *Member) ClearWaiting() bool { return m.flags.clear(waiting) }

// Unread reports whether the published snapshot has events that the watch has not
// examined.
func (m *Member) Unread() bool {
	w := m.watch()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reading() && (w.cur.initial != nil || w.cur.backlog != nil || !w.cur.exhausted(w.feed.Load()))
}

// SetWaiting calls the watch waiting, as if its consumer had asked for more, if it has
// nothing to read or to do. It reports whether it is so. It saves a handler a turn that
// would find nothing.
func (m *Member) SetWaiting() bool {
	w := m.watch()
	w.mu.Lock()
	defer w.mu.Unlock()
	snap := w.feed.Load()
	if !w.reading() || w.extras != nil || w.cur.initial != nil || w.cur.backlog != nil || !w.cur.exhausted(snap) {
		return false
	}
	w.cur.caughtUpWith(snap)
	w.cur.join(w.stream)
	w.flags.set(waiting)
	return true
}

// Resume returns the revision that the consumer may resume from.
func (m *Member) Resume() store.Revision { return store.Revision(m.resume.Load()) }

// Behind reports whether the watch has not reached rev, or has without telling a consumer that
// wants to be told.
func (m *Member) Behind(rev store.Revision) bool { return m.Resume() < rev || m.flags.has(untold) }

// Delivered returns the number of events delivered to the consumer.
func (m *Member) Delivered() uint64 { return m.delivered.Load() }

// ExceedsBuffer reports whether, with next the end of the newest window, the watch
// lags more than its buffer.
func (m *Member) ExceedsBuffer(next window.Seq) bool {
	if m.pending {
		return false
	}
	// Signed, since taken may be beyond the count, or below zero: see Watch.taken.
	return int64(m.stream.count(next)-m.taken.Load()) > int64(m.buffer)
}

// SetStalled calls the watch stalled, from at on until it has caught up, if it
// ExceedsBuffer. It reports whether it was not stalled before.
func (m *Member) SetStalled(next window.Seq, at time.Time) bool {
	if m.flags.has(stalled) {
		return false
	}
	w := m.watch()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !m.ExceedsBuffer(next) {
		return false // it has caught up meanwhile, and would be stalled until it reads again
	}
	m.flags.set(stalled)
	w.obtainExtras().stalledAt = at
	return true
}

// Name returns what the watch is called.
func (m *Member) Name() string { return m.name.String() }

// Stalled reports whether the watch has been called stalled and has not caught
// up since. It may be called from anywhere.
func (m *Member) Stalled() bool { return m.flags.has(stalled) }

// RequestBookmark makes the watch deliver a bookmark as soon as it has caught up.
// The caller must signal it.
func (m *Member) RequestBookmark() { m.flags.set(bookmarkDue) }

// OwesInitialEnd reports whether the InitialEnd bookmark was not delivered yet.
func (m *Member) OwesInitialEnd() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cur.initial.owesBookmark()
}

// leaveStream makes the watch leave its stream, which has been evaluated up to
// position at.
func (m *Member) leaveStream(at window.Seq) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cur.leave(at)
}

// needs reports whether the watch follows its stream and has yet to read its last node, or
// its consumer to handle what it has read of that.
func (m *Member) needs(last *node) bool {
	w := m.watch()
	w.mu.Lock()
	defer w.mu.Unlock()
	switch w.cur.node {
	case nil:
		return false
	case last:
		return w.reading() && len(w.inHand(w.feed.Load())) > 0
	}
	return true
}

// replaceNode makes the watch go on after node by, if it does after old.
func (m *Member) replaceNode(old, by *node) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cur.node == old {
		m.cur.node = by
	}
}

// Ended reports whether the watch has ended. It may be called from anywhere.
func (m *Member) Ended() bool { return m.flags.has(ended) }

// Over reports whether the watch has ended, or is Expired and delivers only its
// backlog.
func (m *Member) Over() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.flags.has(ended) || m.cur.backlog != nil && m.cur.backlog.end != nil
}

// Err returns why the watch ended, or nil while it has not.
func (m *Member) Err() error { return m.watch().Err() }

// End ends the watch with reason, unless it has ended, and signals its consumer.
// Undelivered events are dropped. It may be called from anywhere.
func (m *Member) End(reason error) { m.watch().end(reason) }

// EndQuietly is End without signalling the consumer. It reports whether the watch
// had not ended before.
func (m *Member) EndQuietly(reason error) bool {
	w := m.watch()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.finish(reason)
}

// EndAfterInitial ends the watch with reason, without a signal: immediately, or, if
// the InitialEnd bookmark is still to come, after that, so that the consumer has a usable
// state to resume from. A watch that asked for no such bookmark ends in the middle of its
// initial state.
func (m *Member) EndAfterInitial(reason error) {
	w := m.watch()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.flags.has(ended) && w.cur.initial.owesBookmark() {
		extras := w.obtainExtras()
		extras.drainReason, extras.drainInitial = reason, true
		return
	}
	w.finish(reason)
}

// EndWhenCaughtUp ends the watch with reason once it has delivered all published
// events. It may be called from anywhere.
func (m *Member) EndWhenCaughtUp(reason error) {
	if m.EndQuietlyWhenCaughtUp(reason) {
		m.Signal()
	}
}

// EndQuietlyWhenCaughtUp is EndWhenCaughtUp without the signal: it reports whether
// the caller must signal the watch.
func (m *Member) EndQuietlyWhenCaughtUp(reason error) (signal bool) {
	w := m.watch()
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.flags.has(ended) || w.drainReason() != nil:
		return false
	case w.pending || w.owesNothing():
		w.finish(reason)
	default:
		w.obtainExtras().drainReason = reason
	}
	return w.flags.clear(waiting)
}

// HasEverything reports whether the consumer has certainly been given everything
// that was committed. It is false while a watch with a handler or a channel runs,
// whose consumer shows what it has only by its next read.
func (w *Watch) HasEverything() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.owesNothing() && w.feed.undispatched(w.feed.Load()) == 0
}

// owesNothing reports whether the consumer of a pulled or notified watch, which may
// never read again, has been given all that was published. It is false for a handler
// and a channel, which always read again. The caller holds the lock.
func (w *Watch) owesNothing() bool {
	switch consumerKind(w.kind.Load()) {
	case byHandler, byChannel:
		return false
	}
	if !w.reading() || w.cur.initial != nil || w.cur.backlog != nil || w.resume.Load() == 0 {
		return false
	}
	snap := w.feed.Load()
	if len(w.inHand(snap)) > 0 {
		return false // a loop is in the middle of them, or was left there
	}
	return w.cur.exhausted(snap) || w.cur.node == nil && w.cur.skipIrrelevant(w.stream, snap, snap.Window.Next())
}
