package informer

import (
	"sync"
	"sync/atomic"

	"github.com/watchmill/watchmill/store"
)

// batch is the notifications of one commit: shared by all handlers, never changed.
type batch struct {
	notifications []notification
	// after is the state that they lead to.
	after *state
}

// pending is what one handler has ahead of it. The informer offers, the handler
// takes; neither waits for the other, and no user code runs under its lock.
//
//	           ┌─ start   a state to begin with, taken whole
//	offer ──▶──┼─ batches shared with the other handlers, up to the buffer
//	           ├─ merged  past the buffer, by Merge: per object the newest
//	           └─ newest  past the buffer, by Resnapshot: only that it is behind
//	                                        take ──▶ delivery
type pending struct {
	policy    Policy
	buffer    int
	transform *transformer

	mu sync.Mutex
	// known is what the handler knows when it has handled all that was taken;
	// nil before the start.
	known   *state
	start   *state
	cause   Cause // of start
	batches []*batch
	queued  int // notifications in batches
	merged  *mergedChanges
	newest  *state // with merged, what it leads to
	resync  bool
	slow    bool // under Block: OnError knows that the handler is slow

	// left is how much of the delivery that was taken last is still to be done;
	// replaying: that delivery was of a state as a whole.
	left      atomic.Int64
	replaying bool
}

// delivery is the next n notifications for a handler.
type delivery struct {
	n  int
	at func(i int) notification
	// start: it is the state that the handler began with.
	start bool
}

func deliver(notifications []notification) delivery {
	return delivery{n: len(notifications), at: func(i int) notification { return notifications[i] }}
}

// deliverState delivers a notification for each object of a state.
func deliverState(s *state, as func(*store.Object) notification) delivery {
	objects := s.view.List()
	return delivery{n: len(objects), at: func(i int) notification { return as(objects[i]) }}
}

// begin has the handler start with a state. The informer calls it once, before it
// offers anything.
func (p *pending) begin(s *state, cause Cause) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.start, p.cause = s, cause
}

// offer adds a batch, and reports how far the handler is behind if that has just
// become more than its buffer.
func (p *pending) offer(b *batch) (lag int, slow bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.start != nil:
		p.start = b.after // the handler has not begun, so it begins with the newer state
		return 0, false
	case p.merged != nil:
		p.merged.fold(b.notifications)
		p.newest = b.after
		return 0, false
	case p.newest != nil:
		p.newest = b.after
		return 0, false
	}
	lag = p.ahead()
	if p.policy == Block || lag == 0 || lag+len(b.notifications) <= p.buffer {
		p.batches = append(p.batches, b)
		p.queued += len(b.notifications)
		return p.blocked()
	}
	p.overflow(b)
	return lag + len(b.notifications), true
}

// blocked reports whether the handler has just become so slow that the source must
// wait for it.
func (p *pending) blocked() (lag int, slow bool) {
	lag = p.ahead()
	slow = p.policy == Block && lag > p.buffer && !p.slow
	p.slow = p.slow || slow
	return lag, slow
}

// overflow stops queueing until the handler has caught up.
func (p *pending) overflow(b *batch) {
	if p.policy == Merge {
		p.merged = newMergedChanges(p.transform)
		for _, queued := range append(p.batches, b) {
			p.merged.fold(queued.notifications)
		}
	}
	p.newest = b.after
	p.batches, p.queued = nil, 0
}

// take returns the next delivery; false if there is none. The work that it takes
// to make one is not done under the lock.
func (p *pending) take() (delivery, bool) {
	p.mu.Lock()
	build := p.next()
	if build == nil {
		p.mu.Unlock()
		return delivery{}, false
	}
	p.left.Store(1)
	p.mu.Unlock()
	next := build()
	p.left.Store(int64(next.n))
	return next, true
}

// next decides what comes next, and returns what makes a delivery of it; nil if
// there is nothing.
func (p *pending) next() (build func() delivery) {
	again := p.resync && (!p.replaying || !p.changed()) // never twice in a row, if there is something new
	p.replaying = p.start != nil || again
	switch {
	case p.start != nil:
		return p.takeStart()
	case again:
		p.resync = false
		known := p.known
		return func() delivery { return deliverState(known, resynced) }
	case len(p.batches) > 0:
		first := p.batches[0]
		p.batches[0] = nil
		p.batches, p.queued = p.batches[1:], p.queued-len(first.notifications)
		p.known = first.after
		return func() delivery { return deliver(first.notifications) }
	case p.merged != nil:
		merged := p.merged
		p.known, p.merged, p.newest = p.newest, nil, nil
		return func() delivery { return deliver(merged.notifications()) }
	case p.newest != nil:
		known, newest := p.known, p.newest
		p.known, p.newest = newest, nil
		return func() delivery { return deliver(p.transform.difference(known, newest)) }
	}
	return nil
}

// changed reports whether there are changes to deliver.
func (p *pending) changed() bool { return len(p.batches) > 0 || p.newest != nil }

func (p *pending) takeStart() (build func() delivery) {
	start, cause := p.start, p.cause
	p.known, p.start = start, nil
	return func() delivery {
		next := deliverState(start, func(o *store.Object) notification { return added(o, cause) })
		next.start = true
		return next
	}
}

// ahead returns how many changes the handler has ahead of it. The rest of a state
// that is delivered as a whole does not count: it does not grow with changes.
func (p *pending) ahead() int {
	if p.replaying {
		return p.queued
	}
	return p.queued + int(p.left.Load())
}

// lag returns how many notifications are ahead of the handler. A state that it
// will be compared with counts as one.
func (p *pending) lag() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	lag := p.queued + int(p.left.Load())
	switch {
	case p.start != nil:
		lag += p.start.size()
	case p.merged != nil:
		lag += p.merged.len()
	case p.newest != nil:
		lag++
	}
	return lag
}

// holds reports whether the informer must wait for this handler.
func (p *pending) holds() bool {
	if p.policy != Block {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.slow && p.ahead() > p.buffer/2
}

// released reports, once, that the informer need not wait any more.
func (p *pending) released() bool {
	if p.policy != Block {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.slow || p.ahead() > p.buffer/2 {
		return false
	}
	p.slow = false
	return true
}

// requestResync has all objects delivered again, if the handler has begun.
func (p *pending) requestResync() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resync = p.known != nil
}
