package informer

import (
	"sync"
	"sync/atomic"
)

// batch is what one commit tells: shared by all handlers, never changed.
type batch[T any] struct {
	notifications []Notification[T]
	// after is the state that they lead to.
	after *Snapshot[T]
}

// backlog is what one handler still has to be told. The informer offers, the
// handler takes; neither waits for the other, and no user code runs under its
// lock.
//
//	           ┌─ start   a state to begin with, taken whole
//	offer ──▶──┼─ batches shared with the other handlers, up to the buffer
//	           ├─ merged  past the buffer, by Conflate: per object the newest
//	           └─ newest  past the buffer, by Resnapshot: only where it stands
//	                                        take ──▶ job
type backlog[T any] struct {
	policy Policy
	buffer int
	same   func(a, b *Object[T]) bool

	mu sync.Mutex
	// known is what the handler knows when it has handled all that was taken;
	// nil before the start.
	known   *Snapshot[T]
	start   *Snapshot[T]
	cause   Cause // of start
	batches []*batch[T]
	queued  int // notifications in batches
	merged  *conflation[T]
	newest  *Snapshot[T] // with merged, what it leads to
	resync  bool
	slow    bool // it has been told that the handler is slow

	// left is how much of the job that was taken last is still to be done, and
	// replaying that it was to tell a state as a whole.
	left      atomic.Int64
	replaying bool
}

// job is what a handler does next: n things to be told.
type job[T any] struct {
	n  int
	at func(i int) Notification[T]
	// start: it is the state that the handler began with.
	start bool
}

// begin has the handler start with state. It is for the informer, once, before
// it offers.
func (l *backlog[T]) begin(state *Snapshot[T], cause Cause) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.start, l.cause = state, cause
}

// offer adds a batch, and reports how far the handler is behind if that has just
// become more than its buffer.
func (l *backlog[T]) offer(b *batch[T]) (lag int, slow bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.start != nil:
		l.start = b.after // it has not begun, so it begins with more
		return 0, false
	case l.merged != nil:
		l.merged.fold(b.notifications)
		l.newest = b.after
		return 0, false
	case l.newest != nil:
		l.newest = b.after
		return 0, false
	}
	lag = l.ahead()
	if l.policy == Block || lag == 0 || lag+len(b.notifications) <= l.buffer {
		l.batches = append(l.batches, b)
		l.queued += len(b.notifications)
		return l.blocked()
	}
	l.overflow(b)
	return lag + len(b.notifications), true
}

// blocked reports whether the handler has just become the one that all wait for.
func (l *backlog[T]) blocked() (lag int, slow bool) {
	lag = l.ahead()
	slow = l.policy == Block && lag > l.buffer && !l.slow
	l.slow = l.slow || slow
	return lag, slow
}

// overflow stops queueing until the handler has come back.
func (l *backlog[T]) overflow(b *batch[T]) {
	if l.policy == Conflate {
		l.merged = newConflation(l.same)
		for _, queued := range append(l.batches, b) {
			l.merged.fold(queued.notifications)
		}
	}
	l.newest = b.after
	l.batches, l.queued = nil, 0
}

// take returns the next job; false if there is none. What a job takes to be made
// is not done under the lock.
func (l *backlog[T]) take() (job[T], bool) {
	l.mu.Lock()
	build := l.next()
	if build == nil {
		l.mu.Unlock()
		return job[T]{}, false
	}
	l.left.Store(1)
	l.mu.Unlock()
	next := build()
	l.left.Store(int64(next.n))
	return next, true
}

// next decides what comes next, and returns what makes a job of it; nil if there
// is nothing.
func (l *backlog[T]) next() (build func() job[T]) {
	again := l.resync && (!l.replaying || !l.pending()) // never twice in a row, if there is something new
	l.replaying = l.start != nil || again
	switch {
	case l.start != nil:
		return l.takeStart()
	case again:
		l.resync = false
		known := l.known
		return func() job[T] { return told(known, resynced[T]) }
	case len(l.batches) > 0:
		first := l.batches[0]
		l.batches[0] = nil
		l.batches, l.queued = l.batches[1:], l.queued-len(first.notifications)
		l.known = first.after
		return func() job[T] { return telling(first.notifications) }
	case l.merged != nil:
		merged := l.merged
		l.known, l.merged, l.newest = l.newest, nil, nil
		return func() job[T] { return telling(merged.notifications()) }
	case l.newest != nil:
		known, newest := l.known, l.newest
		l.known, l.newest = newest, nil
		return func() job[T] { return telling(difference(known, newest, l.same)) }
	}
	return nil
}

// pending reports whether there are changes to tell.
func (l *backlog[T]) pending() bool { return len(l.batches) > 0 || l.newest != nil }

func (l *backlog[T]) takeStart() (build func() job[T]) {
	state, cause := l.start, l.cause
	l.known, l.start = state, nil
	return func() job[T] {
		next := told(state, func(o *Object[T]) Notification[T] { return added(o, cause) })
		next.start = true
		return next
	}
}

// ahead returns how many changes the handler has before it. What is left of a
// state that it is told as a whole does not count: that is no more because of
// changes.
func (l *backlog[T]) ahead() int {
	if l.replaying {
		return l.queued
	}
	return l.queued + int(l.left.Load())
}

// lag returns how many notifications are ahead of the handler. Of a state that
// has only been noted where it stands it counts as one.
func (l *backlog[T]) lag() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	lag := l.queued + int(l.left.Load())
	switch {
	case l.start != nil:
		lag += l.start.Len()
	case l.merged != nil:
		lag += l.merged.len()
	case l.newest != nil:
		lag++
	}
	return lag
}

// holds reports whether the informer must wait for this handler.
func (l *backlog[T]) holds() bool {
	if l.policy != Block {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.slow && l.ahead() > l.buffer/2
}

// released reports, once, that the informer need not wait any more.
func (l *backlog[T]) released() bool {
	if l.policy != Block {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.slow || l.ahead() > l.buffer/2 {
		return false
	}
	l.slow = false
	return true
}

// requestResync has the handler told everything again, if it has begun.
func (l *backlog[T]) requestResync() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.resync = l.known != nil
}
