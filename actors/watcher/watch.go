package watcher

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/store"
)

// DefaultBuffer is how many events a watch may lag before it is called stalled
// if [Options].Buffer is zero: ten times what the API server's cacheWatcher
// holds without an index, since lag costs no memory here.
const DefaultBuffer = 1000

// Options is how a watch behaves.
type Options struct {
	// Policy says what happens to a watch that stays stalled.
	Policy Policy
	// Buffer is how many events for it the watch may lag before it is called
	// stalled, and how many an expired Park watch still hands out. Zero means
	// [DefaultBuffer].
	Buffer int
	// Bookmarks asks for bookmarks.
	Bookmarks bool
	// Deadline is when the watch ends with [ErrDeadline]; zero means never.
	Deadline time.Time
}

// Start is where a watch begins. The watchCache fixes it.
type Start struct {
	// Next is the position of the first event to look at.
	Next store.Seq
	// After is the revision that the position stands for: everything up to it is
	// known to the consumer, or comes with State.
	After store.Revision
	// Skip leaves out events up to a revision in the future.
	Skip store.Revision
	// State is delivered first, as Added events; nil for none.
	State *store.TreeView
	// InitialEnd asks for the bookmark that closes State, at revision After.
	InitialEnd bool
}

// Watch is one watch: the handle that its consumer holds, and the waker that
// the watcher actor runs. Make it with [New]; it lives from when the dispatcher
// adopts it until its end.
type Watch struct {
	box    actors.WakeBox
	feed   *Feed
	stream *Stream
	// handler is nil for a watch that is pulled.
	handler func(store.Event)
	// buffer, policy and bookmarks are of the options.
	buffer    uint32
	policy    Policy
	bookmarks bool
	// onPool is where turns run. The dispatcher's.
	onPool bool

	// mu guards what follows. It is held while the cursor moves, never while
	// user code runs.
	mu    sync.Mutex
	cur   cursor
	end   error
	ready chan struct{}
	// rare is nil for most watches; see rarely.
	rare *rarity

	// leash ends the watch with its context, and place is where on it; nil if
	// nothing does. The leashes' lock guards both.
	leash *leash
	place uint32
	// slot is the place among the stream's members. The dispatcher's.
	slot uint32

	// held is what Events has taken but not yielded. The consumer's.
	held []store.Event

	// safe is the revision that the consumer may resume from.
	safe atomic.Uint64
	// taken is how much of its stream the watch has taken, in events.
	taken atomic.Uint64
	// delivered counts the events handed to the consumer.
	delivered atomic.Uint64

	consumer atomic.Int32
	ended    atomic.Bool
	armed    atomic.Bool
	flags    flags
}

// rarity is what most watches do not have, kept apart because 100,000 idle ones
// do.
type rarity struct {
	deadline time.Time
	done     chan struct{}
	// drainTo, if set, is the end of a watch that may first read what there is.
	// With drainPrelude that is the rest of its prelude, otherwise everything
	// that was published.
	drainTo      error
	drainPrelude bool
}

// rarely returns the watch's rarity, made if there is none. The caller holds
// the lock.
func (w *Watch) rarely() *rarity {
	if w.rare == nil {
		w.rare = new(rarity)
	}
	return w.rare
}

// New makes a watch that reads feed. A nil handler makes one that is pulled.
func New(feed *Feed, options Options, handler func(store.Event)) *Watch {
	if options.Buffer == 0 {
		options.Buffer = DefaultBuffer
	}
	w := &Watch{
		feed: feed, handler: handler,
		buffer: uint32(min(uint64(options.Buffer), math.MaxUint32)), policy: options.Policy, bookmarks: options.Bookmarks,
	}
	if !options.Deadline.IsZero() {
		w.rarely().deadline = options.Deadline
	}
	if handler != nil {
		w.consumer.Store(int32(byHandler))
	}
	return w
}

// Begin sets the watch on stream at start, its turns on the pool or not. The
// dispatcher calls it once, before it spawns the watcher.
func (w *Watch) Begin(stream *Stream, start Start, onPool bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stream = stream
	w.onPool = onPool || w.handler == nil
	w.cur = cursor{pos: start.Next, rev: start.After, skip: start.Skip}
	w.taken.Store(stream.count(start.Next))
	if w.end != nil {
		return // it ended on its way here, and is to hold on to nothing
	}
	if start.State == nil && !start.InitialEnd {
		w.safe.Store(uint64(max(start.After, start.Skip)))
		return
	}
	w.cur.prelude = &prelude{state: start.State, revision: start.After, bookmark: start.InitialEnd}
	if w.policy == Conflate {
		w.cur.prelude.base = start.State
	}
}

// StopWith ends the watch when ctx is done.
func (w *Watch) StopWith(ctx context.Context) {
	if ctx.Done() == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.end == nil {
		w.feed.leashes.tie(ctx, w)
	}
}

// Stop ends the watch with [ErrStopped]. It does not wait for a handler that is
// running. Stopping an ended watch does nothing.
func (w *Watch) Stop() { w.Finish(ErrStopped) }

// Finish ends the watch with reason, unless it has ended. What has not been
// delivered is dropped.
func (w *Watch) Finish(reason error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.finish(reason)
}

// FinishAfterPrelude ends the watch with reason: at once, unless the initial
// state is still being delivered; then when that, and the bookmark that closes
// it, are. A consumer that was so close to a usable state need not start over.
func (w *Watch) FinishAfterPrelude(reason error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.cur.prelude; p != nil && p.bookmark && w.end == nil {
		w.rarely().drainTo, w.rarely().drainPrelude = reason, true
		return
	}
	w.finish(reason)
}

// FinishWhenCaughtUp ends the watch with reason once everything that has been
// published is delivered.
func (w *Watch) FinishWhenCaughtUp(reason error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if rare := w.rarely(); w.end == nil && rare.drainTo == nil {
		rare.drainTo = reason
		w.signal()
	}
}

// finish is Finish under the lock.
func (w *Watch) finish(reason error) {
	if w.end != nil {
		return
	}
	w.end = reason
	w.ended.Store(true)
	w.cur.prelude, w.cur.node = nil, nil
	w.feed.leashes.untie(w)
	if w.rare != nil && w.rare.done != nil {
		close(w.rare.done)
	}
	w.signal()
	w.box.Stop()
}

// Done returns a channel that is closed when the watch ends.
func (w *Watch) Done() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	rare := w.rarely()
	if rare.done == nil {
		rare.done = make(chan struct{})
		if w.end != nil {
			close(rare.done)
		}
	}
	return rare.done
}

// Err returns why the watch ended, or nil while it has not.
func (w *Watch) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.end
}

// Revision returns the revision from which a new watch would continue where
// this one's consumer stands: everything up to it has been delivered. It is
// zero while the initial state is not complete: start over then.
//
// It is never ahead of the consumer, so that nothing is lost, and exact once
// the consumer has come back for more, stopped ranging, or its handler has
// returned: what happens that is not for the watch then moves it on, too. While a
// handler works through a batch, just after a receive from Chan, or after an
// event marked Conflated it may be behind.
func (w *Watch) Revision() store.Revision {
	if w.armed.Load() {
		w.passBy()
	}
	return store.Revision(w.safe.Load())
}

// passBy moves a watch whose consumer waits for more past what was published and
// is not for it, of which it is not told.
func (w *Watch) passBy() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.armed.Load() || w.end != nil || w.cur.prelude != nil {
		return
	}
	if snap := w.feed.Load(); w.cur.exhausted(snap) {
		w.cur.caughtUpWith(snap)
		w.safe.Store(uint64(max(w.cur.rev, w.cur.skip)))
	}
}

// Delivered returns how many events, bookmarks included, the consumer was
// given.
func (w *Watch) Delivered() uint64 { return w.delivered.Load() }

// Lag returns how many events for this watch lie ahead of its consumer, not
// counting a prelude. While it catches up from the window the figure may be too
// high.
func (w *Watch) Lag() uint64 {
	if w.ended.Load() {
		return 0
	}
	count, taken := w.stream.count(w.feed.Load().Window.Next()), w.taken.Load()
	if count <= taken {
		return 0
	}
	return count - taken
}

// Stalled reports whether the dispatcher has called the watch stalled and it
// has not caught up since.
func (w *Watch) Stalled() bool { return w.flags.has(stalled) }
