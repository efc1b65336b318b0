package watcher

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// DefaultBuffer is the default of [Options].Buffer: ten times the buffer of the API
// server's cacheWatcher without an index, since lag costs no memory here.
const DefaultBuffer = 1000

// Options are a watch's options.
type Options struct {
	// Policy says what happens to a watch that stays stalled.
	Policy Policy
	// Buffer is how many of its events the watch may lag before it is stalled, and
	// how many it keeps when they leave the window. Zero means [DefaultBuffer].
	Buffer int
	// Bookmarks asks for bookmarks.
	Bookmarks bool
	// Progress asks for one, with Bookmarks, soon after each revision without an event.
	Progress bool
	// OnPool runs a handler on the system's pool, where it must not block.
	OnPool bool
	// Name is the watch's name in errors and Info.
	Name usercode.Name
}

// Deadline is when a watch ends. The last bookmark comes shortly before. The zero value is
// never.
type Deadline struct {
	// At is when the watch ends with [ErrDeadline].
	At time.Time
	// ByContext: it is the deadline of the context by which the watch is stopped, so that
	// nothing but the last bookmark depends on it.
	ByContext bool
}

// From is where a watch starts. The zero value starts now.
type From struct {
	// NotBefore is a lower bound for a start now: changes up to it are in the past,
	// even if the cache has not received them yet. It is of Epoch, and means nothing in
	// another one.
	NotBefore store.Revision
	Epoch     uint64
	// Revision starts after this revision, which may be in the future.
	Revision store.Revision
	// State starts with the state, as Added events. It must have reached Revision.
	State bool
	// InitialEnd sends a bookmark after the state.
	InitialEnd bool
	// Last starts with that many of the newest events in the window.
	Last int
}

// Resumes reports whether the watch starts after a revision that it was given, with the
// changes since.
func (f From) Resumes() bool { return f.Revision > 0 && !f.State && f.Last == 0 }

// Now reports whether the watch may start at any snapshot that is new enough.
func (f From) Now() bool { return (f.State || f.Revision == 0) && f.Last == 0 }

// Watch is the consumer's view of a watch; [Member] is the dispatcher's. It begins
// when the dispatcher registers it.
type Watch struct {
	feed   *Feed
	stream *Stream
	// target signals the consumer to read. It is set when the watch is made, or, for a
	// pulled watch, when its consumer first waits.
	target target

	// buffer, policy and traits are copies of the options.
	buffer uint32
	policy Policy
	traits traits
	// pending: the watch starts at a revision that has not come.
	pending bool
	// gap says which later events must be marked because events were left out.
	gap gap

	// mu guards cur, extras and ending, and of the fields above stream, target, pending
	// and gap. It is held while the cursor moves, and of user code only Schema.SetRevision runs
	// then.
	mu     sync.Mutex
	cur    cursor
	extras *extras
	// ending is why the watch ended, nil while it has not.
	ending *EndError

	// group ends the watch with its context, and groupIndex is its place there;
	// nil if nothing does. The groups' lock guards both.
	group      *contextGroup
	groupIndex uint32
	// memberIndex is the place among the stream's members. The dispatcher's.
	memberIndex uint32
	// place is one more than the place in the feed's registry; zero for none. The
	// registry's lock guards it.
	place uint32
	kind  atomic.Int32

	// name and began say which watch this is, and since when; see Feed.elapsed.
	name  usercode.Name
	began time.Duration

	// resume is the revision that the consumer may resume from.
	resume atomic.Uint64
	// taken is how many events of its stream the watch has read. It is less than zero, modulo
	// 2⁶⁴, while more events from before the stream are kept for the watch than the stream has.
	taken atomic.Uint64
	// delivered counts the events given to the consumer.
	delivered atomic.Uint64

	progress
}

// target signals a watch's consumer to read.
type target interface{ signal() }

// extras are rarely used fields, kept apart to save memory for 100,000 idle watches.
type extras struct {
	done chan struct{}
	// handlerDone is closed once the handler has returned for the last time. Nil unless
	// it is waited for.
	handlerDone chan struct{}
	// held are the events taken but not given to the consumer.
	held []store.Event
	// inHand is what the consumer took last, if that was held before or has left the window.
	inHand []store.Event
	// lost counts the events that were left out.
	lost uint64
	// stalledAt is when the watch last became stalled.
	stalledAt time.Time
	// drainReason, if set, is the reason that ends the watch after it has read the rest
	// of its initial state, or everything that was published.
	drainReason  error
	drainInitial bool
	// retrying is the handler, if it is one that can fail.
	retrying *retrying
}

// New makes a watch that reads feed, for Next, Events, Batches or Pump.
func New(feed *Feed, options Options) *Watch {
	w := new(Watch)
	w.prepare(feed, options)
	return w
}

func (w *Watch) prepare(feed *Feed, options Options) {
	if options.Buffer == 0 {
		options.Buffer = DefaultBuffer
	}
	w.feed = feed
	w.buffer = uint32(min(uint64(options.Buffer), math.MaxUint32))
	w.policy, w.traits = options.Policy, traitsOf(options)
	w.memberIndex, w.name, w.began = noMember, options.Name, feed.elapsed(feed.now())
}

// obtainExtras returns the watch's extras, creating them if necessary. The caller holds the
// lock.
func (w *Watch) obtainExtras() *extras {
	if w.extras == nil {
		w.extras = new(extras)
	}
	return w.extras
}

// drainReason returns the reason that ends the watch when it has been drained, nil if it goes on.
// The caller holds the lock.
func (w *Watch) drainReason() error {
	if w.extras == nil {
		return nil
	}
	return w.extras.drainReason
}

// Member returns the dispatcher's view of the watch.
func (w *Watch) Member() *Member { return (*Member)(w) }

// StopWith ends the watch when ctx is done.
func (w *Watch) StopWith(ctx context.Context) {
	if ctx.Done() == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.flags.has(ended) {
		w.feed.Registry.groups.add(ctx, w)
	}
}

// Drain has the watch end when it has been given everything up to final, unless its
// dispatcher sees to that. It may block until ctx is done.
func (w *Watch) Drain(ctx context.Context, final store.Revision) {
	if w.feed.Drain != nil {
		w.feed.Drain(ctx, final)
	}
}

// Stop ends the watch with [ErrStopped]. It does not wait for a running handler.
// Stopping an ended watch has no effect.
func (w *Watch) Stop() { w.end(ErrStopped) }

// StopFor is Stop that tells the cause.
func (w *Watch) StopFor(cause error) { w.end(stoppedBy(cause)) }

// end ends the watch with reason, unless it has ended, and signals its consumer.
// Undelivered events are dropped.
func (w *Watch) end(reason error) {
	w.mu.Lock()
	first, target := w.finish(reason), w.target
	w.mu.Unlock()
	if first && target != nil {
		target.signal()
	}
}

// finish is end without a signal. It reports whether the watch had not ended before.
// The caller holds the lock.
func (w *Watch) finish(reason error) bool {
	if w.flags.has(ended) {
		return false
	}
	if w.feed.Reason != nil {
		reason = w.feed.Reason(reason)
	}
	w.ending = &EndError{Watch: w.name, Reason: reason}
	w.flags.set(ended)
	w.cur.release()
	w.feed.Registry.remove(w)
	w.feed.Registry.groups.remove(w)
	if w.extras != nil {
		w.extras.release(w.ending)
	}
	if h, ok := w.target.(*handler); ok {
		h.box.Stop() // the dispatcher removes the watch when the actor has stopped
	} else {
		w.setSilent()
		w.feed.ended(w)
	}
	return true
}

// release drops what was kept for the consumer, and tells those that wait for the end.
func (x *extras) release(why error) {
	x.held, x.inHand = nil, nil
	if x.done != nil {
		close(x.done)
	}
	if x.retrying != nil {
		x.retrying.stop(why)
	}
}

// setSilent records that the consumer is not called again. The caller holds the lock.
func (w *Watch) setSilent() {
	w.flags.set(silent)
	if w.extras != nil && w.extras.handlerDone != nil {
		close(w.extras.handlerDone)
	}
}

// Wait blocks until the watch has ended and its handler, if it has one, has returned
// and is not called again; else it returns ctx's cause. The handler must not call
// it, since it would wait for itself.
func (w *Watch) Wait(ctx context.Context) error {
	w.mu.Lock()
	extras := w.obtainExtras()
	if extras.handlerDone == nil {
		extras.handlerDone = make(chan struct{})
		if w.flags.has(silent) {
			close(extras.handlerDone)
		}
	}
	gone := extras.handlerDone
	w.mu.Unlock()
	return w.feed.await(ctx, gone)
}

// Done returns a channel that is closed when the watch ends.
func (w *Watch) Done() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	extras := w.obtainExtras()
	if extras.done == nil {
		extras.done = make(chan struct{})
		if w.flags.has(ended) {
			close(extras.done)
		}
	}
	return extras.done
}

// Err returns why the watch ended, or nil while it has not.
func (w *Watch) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reason()
}

// reason is Err under the lock.
func (w *Watch) reason() error {
	if w.ending == nil {
		return nil
	}
	return w.ending
}

// Revision returns the revision from which a new watch continues without loss:
// everything up to it has been delivered. It is zero while the initial state is
// incomplete: start over then.
//
// It is never ahead of the consumer. It is exact once the consumer has asked for
// more events, stopped ranging, or its handler has returned; then events that are not
// for the watch advance it, too. While a handler works through a batch, just after a
// receive from Chan, or after an event marked Conflated, it may be behind.
func (w *Watch) Revision() store.Revision {
	if w.flags.has(waiting) {
		w.skipPublished()
	}
	return store.Revision(w.resume.Load())
}

// skipPublished moves a waiting watch past published events that are not for it,
// which it is not signalled for.
func (w *Watch) skipPublished() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.flags.has(waiting) || !w.reading() || w.cur.initial != nil || w.cur.backlog != nil {
		return
	}
	if snap := w.feed.Load(); w.cur.exhausted(snap) {
		w.cur.caughtUpWith(snap)
		w.resumeAtCursor()
	}
}

// reading reports whether the watch has begun and has not ended. The caller
// holds the lock.
func (w *Watch) reading() bool {
	return w.stream != nil && !w.pending && !w.flags.has(ended)
}

// Delivered returns the number of events, including bookmarks, given to the consumer. A
// batch counts as a whole when a loop or a handler comes to its first event.
func (w *Watch) Delivered() uint64 { return w.delivered.Load() }

// Lost returns how many events were left out because the policy is Conflate and they
// had left the window: superseded states, objects created and deleted meanwhile, and
// emitted values. For a watch with a filter it is an upper bound, since the filter
// was not evaluated for them.
func (w *Watch) Lost() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.extras == nil {
		return 0
	}
	return w.extras.lost
}

// Lag returns how many events for this watch are ahead of its consumer, from
// [Watch.Revision] to the newest commit, without the rest of an initial state. A
// handler's batch counts until all of it is handled. Events that the dispatcher has
// not evaluated yet count whether they are for the watch or not. So do events of
// the window while the watch catches up. Before a start that had not come, it counts from
// there. It is zero once the watch has ended.
func (w *Watch) Lag() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lag()
}

// lag is Lag. The caller holds the lock.
func (w *Watch) lag() (n uint64) {
	switch {
	case w.reading():
		n, _ = w.unread()
	case w.pending && !w.flags.has(ended): // its start may have been committed
		snap, start := w.feed.Load(), store.Revision(w.resume.Load())
		committed := snap.Revision + store.Revision(w.feed.undispatched(snap))
		n = uint64(max(committed, start) - start)
	}
	return n
}

// Stalled reports whether the watch lagged more than its buffer and has not caught up
// since.
func (w *Watch) Stalled() bool { return w.flags.has(stalled) }
