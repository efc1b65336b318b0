package objectcache

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/store"
)

// phase is the state of an entry. Only one that is syncing or live needs a Reflector.
//
//	      first Acquire, Get        first state             immutable
//	stopped ──────────────▶ syncing ───────────▶ live ───────────────────▶ frozen
//	  ▲  ▲                   │   ▲                │  │                       │
//	  │  └── unreferenced ───┤   └─ Get ─ lost ◀──┼──┘ source gone for good  │
//	  └───── idle, unreferenced ──────────────────┘                          │
//	  └───── unreferenced ───────────────────────────────────────────────────┘
//
// From each, Close leads to closed. A first Acquire leads from frozen and lost to syncing, too:
// it may come before the supervisor has stopped an entry that is unreferenced.
type phase uint8

const (
	stopped phase = iota
	syncing
	live
	frozen
	lost
	closed
)

// view is what readers see of an entry. It is immutable, except that change is
// closed.
type view struct {
	phase phase
	// object is what a live or frozen entry serves; nil if there is none.
	object *store.Object
	// err is the error of a read without an object: that there is none or, in the phases
	// that do not serve, the source's last error.
	err error
	// ended: the source had ended for good when it was last followed.
	ended bool
	// change is closed when readers that wait should load the view again; nil
	// unless syncing.
	change chan struct{}
}

// served reports whether a read can be answered.
func (v *view) served() bool { return v.phase == live || v.phase == frozen }

// changes reports whether Get does not return from v what it returns from old. To ask a source
// again that has ended changes nothing unless the object arrives.
func (v *view) changes(old *view) bool {
	return v.served() != old.served() || v.object != old.object || v.ended != old.ended || v.phase == closed
}

// entry is one key, with the number of its references and the state of its object.
//
// Readers load view without a lock. References, the sink of the entry's Reflector and the
// supervisor hold mu to change it.
type entry struct {
	key  string
	view atomic.Pointer[view]
	// used is when the object was last read, or arrived, since the cache was
	// made.
	used atomic.Int64
	// rechecking: a recheck is on its way to the supervisor.
	rechecking atomic.Bool
	// waiting is how many calls wait for the object, behind how many wait for a revision.
	waiting, behind atomic.Int64

	mu   sync.Mutex
	refs int
	// revision is the revision up to which the view has everything; zero while it serves
	// nothing. It is set after the view.
	revision store.Revision
	// sink is the sink of the present Reflector, whose updates are taken; nil for none.
	sink *sink
	// trouble is the source's last error since its last update.
	trouble error
	// changed and advanced are closed when what the view serves changes, and when
	// revision is set. Nil until they are asked for.
	changed, advanced chan struct{}

	// child is the Reflector that follows the object, nil for none. Only the supervisor sets
	// it. There is at most one: the next one waits for its end.
	child atomic.Pointer[reflector.Ref]

	// The rest belongs to the supervisor.
	stopping   bool // child was told to stop
	idleTimer  clock.Timer
	idleTimers uint64 // how many were armed
}

// awaited reports whether a call waits for a revision.
func (e *entry) awaited() bool { return e.behind.Load() > 0 }

func newEntry(key string) *entry {
	e := &entry{key: key}
	e.view.Store(&view{phase: stopped})
	return e
}

// show replaces the view and wakes the readers that wait. The caller holds mu.
func (e *entry) show(v *view) {
	old := e.view.Swap(v)
	if old.change != nil && old.change != v.change {
		close(old.change)
	}
	if old.phase != v.phase {
		signal(&e.advanced) // callers that wait for a revision check the phase
	}
	if v.changes(old) {
		signal(&e.changed)
	}
}

func revisionOf(o *store.Object) store.Revision {
	if o == nil {
		return 0
	}
	return o.Revision
}

// signal closes the channel, if it was asked for.
func signal(c *chan struct{}) {
	if *c != nil {
		close(*c)
		*c = nil
	}
}

// progress returns the view, the revision up to which that has everything, and a channel that
// is closed when there is more. They belong together, since an object that was idle may begin
// again with a state from before that revision.
func (e *entry) progress() (v *view, reached store.Revision, advanced <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.view.Load(), e.revision, asked(&e.advanced)
}

// nextChange returns a channel that is closed when what the view serves changes.
func (e *entry) nextChange() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return asked(&e.changed)
}

// asked returns the channel that is closed at the next signal.
func asked(c *chan struct{}) <-chan struct{} {
	if *c == nil {
		*c = make(chan struct{})
	}
	return *c
}

// advance records that the view has everything up to rev, as a sink says.
func (e *entry) advance(s *sink, rev store.Revision) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.view.Load().served() && (e.sink == s || e.sink == nil) {
		e.revision, e.trouble = rev, nil
		signal(&e.advanced)
	}
}

func (e *entry) touch(now time.Duration) { e.used.Store(int64(now)) }

// acquire counts a reference, and reports whether a recheck is needed: the first reference
// starts to follow the object, even if the supervisor does not know yet that there was none
// before; later ones do not wake an idle object.
func (e *entry) acquire() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.refs++
	return e.refs == 1 && (e.start(stopped) || e.start(frozen) || e.start(lost))
}

// want starts to follow the object again, and reports whether a recheck is needed.
func (e *entry) want() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.start(stopped) || e.start(lost)
}

// start begins to wait for the object if the entry is in the given phase, and
// reports whether it was. The caller holds mu.
func (e *entry) start(from phase) bool {
	if e.view.Load().phase != from {
		return false
	}
	e.revision, e.trouble = 0, nil
	e.show(&view{phase: syncing, ended: from == lost, change: make(chan struct{})})
	return true
}

// release gives a reference back and reports whether it was the last. It wakes the
// readers that wait, for the reference may be theirs.
func (e *entry) release() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.refs--
	signal(&e.changed)
	signal(&e.advanced)
	if v := *e.view.Load(); v.change != nil {
		v.change = make(chan struct{})
		e.show(&v)
	}
	return e.refs == 0
}

// referenced reports whether there is a reference.
func (e *entry) referenced() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.refs > 0
}

// review stops an entry that is idle or not referenced any more. It reports
// whether a Reflector is needed, and if the object is being followed, how long
// until it is idle; zero means never.
func (e *entry) review(now, maxIdle time.Duration) (needed bool, idleIn time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	phase := e.view.Load().phase
	if phase == live && maxIdle != NeverIdle {
		// If the clock was set back, the last read may be in the future.
		unread := max(0, now-time.Duration(e.used.Load()))
		idleIn = max(0, maxIdle-unread)
		if idleIn == 0 && (e.waiting.Load() > 0 || e.awaited()) {
			idleIn = maxIdle // calls are about to read it, or wait for a newer state
		}
	}
	idle := phase == live && maxIdle != NeverIdle && idleIn == 0
	if phase != closed && phase != stopped && (e.refs == 0 || idle) {
		e.sink = nil
		e.show(&view{phase: stopped})
		return false, 0
	}
	return phase == syncing || phase == live, idleIn
}

// follow makes s the sink whose updates are taken, unless the entry has been closed since its
// review.
func (e *entry) follow(s *sink) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.view.Load().phase != closed {
		e.sink = s
	}
}

// take takes the object's newest state from a sink. It reports whether the sink
// should go on, and whether this was its first state.
func (e *entry) take(s *sink, o *store.Object, immutable bool, now time.Duration) (goOn, first bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sink != s {
		return false, false
	}
	next := &view{phase: live, object: o}
	switch {
	case o == nil:
		next.err = about(e.key, ErrNotFound)
	case immutable:
		next.phase, e.sink = frozen, nil
	}
	if first = e.view.Load().phase == syncing; first {
		e.touch(now) // or it might be idle before the readers that wait have read it
	}
	e.show(next)
	return !immutable, first
}

// sourceFailed notes an error of the source, for the readers that wait.
func (e *entry) sourceFailed(s *sink, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sink != s {
		return
	}
	e.trouble = err
	if v := *e.view.Load(); v.phase == syncing {
		v.err = err
		e.show(&v)
	}
}

// sourceErr returns the source's last error, nil if the source is being followed. After an error
// that interrupts only a watch, a quiet source sends no update.
func (e *entry) sourceErr() error {
	child := e.child.Load()
	followed := child != nil && child.Stats().Phase == reflector.Watching
	e.mu.Lock()
	defer e.mu.Unlock()
	switch v := e.view.Load(); {
	case !v.served():
		return v.err
	case followed:
		return nil
	}
	return e.trouble
}

// unreachable notes that the source cannot be followed any more.
func (e *entry) unreachable(s *sink, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sink == s {
		e.sink = nil
		e.show(&view{phase: lost, ended: true, err: err})
	}
}

// close ends the entry: it does not change any more.
func (e *entry) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sink = nil
	e.show(&view{phase: closed, err: about(e.key, ErrClosed)})
}
