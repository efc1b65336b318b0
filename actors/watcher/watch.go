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

// DefaultBuffer is how many events a watch may lag before it is called stalled
// if [Options].Buffer is zero: ten times what the API server's cacheWatcher
// holds without an index, since lag costs no memory here.
const DefaultBuffer = 1000

// Options is what is asked of a watch.
type Options struct {
	// Filter is what the watch wants; nil is everything. Watches with the same
	// one share its evaluation.
	Filter *store.Filter
	// From is where it starts.
	From From
	// Policy says what happens to a watch that stays stalled.
	Policy Policy
	// Buffer is how many events for it the watch may lag before it is called
	// stalled, and how many it keeps when the window leaves it behind. Zero means
	// [DefaultBuffer].
	Buffer int
	// Bookmarks asks for bookmarks.
	Bookmarks bool
	// Deadline is when the watch ends with [ErrDeadline]; zero means never.
	Deadline time.Time
	// OnPool runs a handler on the system's pool. One that may block must not be
	// there.
	OnPool bool
	// Name is what the watch is called in errors and figures.
	Name usercode.Name
}

// From is where a watch starts. The zero value starts now.
type From struct {
	// NotBefore is a revision that a start now must not lie before: what leads up
	// to it is the past, even if the cache has not heard of it.
	NotBefore store.Revision
	// Revision starts after it; in the future, too.
	Revision store.Revision
	// State starts with the state, as Added events, then goes on.
	State bool
	// InitialEnd closes the state with a bookmark.
	InitialEnd bool
	// Last starts with as many of the newest events in the window.
	Last int
}

// Watch is one watch as its consumer sees it; [Member] is the same watch as the
// dispatcher sees it. It begins when the dispatcher takes it in and lives until
// its end.
type Watch struct {
	feed   *Feed
	stream *Stream
	// target has the consumer look at the watch. It is set when the watch is made,
	// or for one that is pulled when its consumer first waits.
	target target
	// asked is what the watch was made with, until it begins.
	asked *Options

	// buffer, policy and traits are of the options.
	buffer uint32
	policy Policy
	traits traits
	// pending: the watch starts at a revision that has not come.
	pending bool
	// untold: events were left out of which the consumer has not been told.
	untold bool

	// mu guards target, asked, what precedes and what follows. It is held while
	// the cursor moves, never while user code runs.
	mu     sync.Mutex
	cur    cursor
	extras *extras

	// group ends the watch with its context, and groupIndex is its place there;
	// nil if nothing does. The groups' lock guards both.
	group      *contextGroup
	groupIndex uint32
	// memberIndex is the place among the stream's members. The dispatcher's.
	memberIndex uint32
	// place is one more than the place in the feed's registry; zero for none. The
	// registry's lock guards it.
	place uint32

	// name and began say which watch this is, and since when, in nanoseconds by
	// the feed's clock.
	name  usercode.Name
	began int64

	// resume is the revision that the consumer may resume from.
	resume atomic.Uint64
	// taken is how much of its stream the watch has taken, in events.
	taken atomic.Uint64
	// delivered counts the events handed to the consumer.
	delivered atomic.Uint64

	kind  atomic.Int32
	flags flags
}

// target has a watch's consumer look for what is next.
type target interface{ signal() }

// extras are what most watches do not have, kept apart because 100,000 idle
// ones do not.
type extras struct {
	deadline time.Time
	done     chan struct{}
	// end is why the watch ended.
	end error
	// held is what was taken and not given to the consumer.
	held []store.Event
	// lost counts the events that were left out.
	lost uint64
	// stalledAt is when the watch was last called stalled.
	stalledAt time.Time
	// drainTo, if set, is the end of a watch that may first read what there is:
	// the rest of its initial state, or everything that was published.
	drainTo      error
	drainInitial bool
}

// New makes a watch that reads feed and is pulled.
func New(feed *Feed, options Options) *Watch {
	w := new(Watch)
	w.prepare(feed, options)
	return w
}

func (w *Watch) prepare(feed *Feed, options Options) {
	if options.Buffer == 0 {
		options.Buffer = DefaultBuffer
	}
	w.feed, w.asked = feed, &options
	w.buffer = uint32(min(uint64(options.Buffer), math.MaxUint32))
	w.policy, w.traits = options.Policy, traitsOf(options)
	w.memberIndex, w.name, w.began = noMember, options.Name, feed.now().UnixNano()
	if !options.Deadline.IsZero() {
		w.more().deadline = options.Deadline
	}
}

// more returns the watch's extras, made if there are none. The caller holds the
// lock.
func (w *Watch) more() *extras {
	if w.extras == nil {
		w.extras = new(extras)
	}
	return w.extras
}

// Member returns the watch as the dispatcher sees it.
func (w *Watch) Member() *Member { return (*Member)(w) }

// StopWith ends the watch when ctx is done.
func (w *Watch) StopWith(ctx context.Context) {
	if ctx.Done() == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.flags.has(ended) {
		w.feed.groups.add(ctx, w)
	}
}

// Stop ends the watch with [ErrStopped]. It does not wait for a handler that is
// running. Stopping an ended watch does nothing.
func (w *Watch) Stop() { w.end(ErrStopped) }

// end ends the watch with reason, unless it has ended, and tells its consumer.
// What has not been delivered is dropped.
func (w *Watch) end(reason error) {
	w.mu.Lock()
	first, target := w.finish(reason), w.target
	w.mu.Unlock()
	if first && target != nil {
		target.signal()
	}
}

// finish is end without telling the consumer. It reports whether the watch had
// not ended. The caller holds the lock.
func (w *Watch) finish(reason error) bool {
	if w.flags.has(ended) {
		return false
	}
	more := w.more()
	more.end, more.held = &EndError{Watch: w.name, Reason: reason}, nil
	w.flags.set(ended)
	w.cur.release()
	w.feed.Registry.remove(w)
	w.feed.groups.remove(w)
	if more.done != nil {
		close(more.done)
	}
	if h, ok := w.target.(*handler); ok {
		h.box.Stop() // the watch is forgotten when that has stopped
	} else {
		w.feed.ended(w)
	}
	return true
}

// Done returns a channel that is closed when the watch ends.
func (w *Watch) Done() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	more := w.more()
	if more.done == nil {
		more.done = make(chan struct{})
		if w.flags.has(ended) {
			close(more.done)
		}
	}
	return more.done
}

// Err returns why the watch ended, or nil while it has not.
func (w *Watch) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reason()
}

// reason is Err under the lock.
func (w *Watch) reason() error {
	if w.extras == nil {
		return nil
	}
	return w.extras.end
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
	if w.flags.has(waiting) {
		w.skipPublished()
	}
	return store.Revision(w.resume.Load())
}

// skipPublished moves a watch whose consumer waits for more past what was
// published and is not for it, of which it is not told.
func (w *Watch) skipPublished() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.flags.has(waiting) || !w.reading() || w.cur.initial != nil || w.cur.backlog != nil {
		return
	}
	if snap := w.feed.Load(); w.cur.exhausted(snap) {
		w.cur.caughtUpWith(snap)
		w.resume.Store(uint64(w.cur.rev))
	}
}

// reading reports whether the watch has begun and has not ended. The caller
// holds the lock.
func (w *Watch) reading() bool {
	return w.stream != nil && !w.pending && !w.flags.has(ended)
}

// Delivered returns how many events, bookmarks included, the consumer was
// given.
func (w *Watch) Delivered() uint64 { return w.delivered.Load() }

// Lost returns how many events were left out because the policy is Conflate and
// the window had left the watch behind: states that were superseded, objects
// that came and went, and values that were emitted. If the watch has a filter
// it is at most so many, since what was left out was not looked at.
func (w *Watch) Lost() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.extras == nil {
		return 0
	}
	return w.extras.lost
}

// Lag returns how many events for this watch lie ahead of its consumer, from
// where [Watch.Revision] stands to what was committed, without the rest of an
// initial state. So the events that a handler was handed together count until it
// has handled them all. Events that are on their way to the dispatcher count
// whether they are for the watch or not, and so do those of the window while the
// watch catches up from there. A watch that has ended lags nothing.
func (w *Watch) Lag() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.reading() {
		return 0
	}
	n, _ := w.unread()
	return n
}

// Stalled reports whether the dispatcher has called the watch stalled and it
// has not caught up since.
func (w *Watch) Stalled() bool { return w.flags.has(stalled) }

// traits are the options that are yes or no, in a byte.
type traits uint8

const (
	bookmarks traits = 1 << iota
	onPool
)

func traitsOf(o Options) (t traits) {
	if o.Bookmarks {
		t |= bookmarks
	}
	if o.OnPool {
		t |= onPool
	}
	return t
}

func (t traits) has(u traits) bool { return t&u != 0 }

// flag is one of a watch's flags.
type flag uint32

const (
	// ended: the watch has ended.
	ended flag = 1 << iota
	// waiting: the watch has caught up and its consumer asks for more.
	waiting
	// stalled: the dispatcher has called the watch stalled, and it has not caught
	// up since.
	stalled
	// bookmarkDue: a bookmark was asked for and has not been delivered.
	bookmarkDue
)

// flags are several, each set and cleared at once.
type flags struct{ bits atomic.Uint32 }

func (f *flags) has(g flag) bool { return f.bits.Load()&uint32(g) != 0 }

// set reports whether the flag was not set before.
func (f *flags) set(g flag) bool { return f.bits.Or(uint32(g))&uint32(g) == 0 }

// clear reports whether the flag was set. Where it is not, it costs a read.
func (f *flags) clear(g flag) bool { return f.has(g) && f.bits.And(^uint32(g))&uint32(g) != 0 }
