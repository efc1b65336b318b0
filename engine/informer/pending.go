package informer

import (
	"sync"
	"sync/atomic"

	"github.com/watchmill/watchmill/store"
)

// batch is the notifications of one commit, shared by all handlers and never changed, or of
// several for one handler that is behind.
type batch struct {
	notifications []notification
	// after is the state after them.
	after *state
	// joined: it is of one handler, which may add to it until it is taken.
	joined bool
}

// pending is the queue of one handler. The informer offers, the handler takes;
// neither waits for the other, and no user code runs under its lock.
//
//	           ┌─ start   the initial state, taken as a whole
//	offer ──▶──┼─ batches shared with the other handlers, up to the buffer
//	           ├─ merged  beyond the buffer, under Merge: one change per object
//	           └─ newest  beyond the buffer, under Resnapshot: only the newest state
//	                                        take ──▶ delivery
type pending struct {
	policy    Policy
	buffer    int
	transform *transformer

	mu sync.Mutex
	// known is the state that the handler knows when it has handled all that was
	// taken; nil before the start.
	known   *state
	start   *state
	cause   Cause // of start
	batches []*batch
	queued  int // notifications in batches
	merged  *mergedChanges
	newest  *state // with merged, the state after it
	resync  bool
	slow    bool // under Block: the slow handler was reported
	ended   bool // the handler has ended: nothing is pending any more

	// left is the rest of the delivery that was taken last; replaying: that
	// delivery was of a whole state.
	left      atomic.Int64
	replaying bool
}

// delivery is the next n notifications for a handler.
type delivery struct {
	n  int
	at func(i int) notification
	// start: the delivery is the handler's initial state.
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

// begin sets the handler's initial state. The informer calls it once, before it
// offers a batch.
func (p *pending) begin(s *state, cause Cause) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		p.start, p.cause = s, cause
	}
}

// end drops what is pending, and all that is offered later: a registration that is kept
// keeps none of it. The handler is not running. It calls ended before the lag can be
// seen to be zero, which it is for another reason once the handler has caught up.
func (p *pending) end(ended func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	p.known, p.start, p.batches, p.queued, p.merged, p.newest = nil, nil, nil, 0, nil, nil
	p.left.Store(0)
	ended()
}

// offer adds a batch. It reports the handler's lag if that has just exceeded the
// buffer.
func (p *pending) offer(b *batch) (lag int, slow bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.ended:
		return 0, false
	case p.start != nil:
		p.start = b.after // the handler has not started, so it starts with the newer state
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
		p.queue(b)
		return p.blocked()
	}
	p.overflow(b)
	return lag + len(b.notifications), true
}

// sharedBatches is how many batches are queued before small ones are joined.
const sharedBatches = 64

// queue adds a batch at the end. Each batch keeps a version of the copy in memory, so when
// there are many, one that is small compared with the buffer is joined to the last. Without a bound the
// buffer counts as the default one, since the room for what is joined is made at once.
func (p *pending) queue(b *batch) {
	p.queued += len(b.notifications)
	n, most := len(p.batches), min(p.buffer, DefaultBuffer)/sharedBatches
	if n < sharedBatches || len(p.batches[n-1].notifications)+len(b.notifications) > most {
		p.batches = append(p.batches, b)
		return
	}
	last := p.batches[n-1]
	if !last.joined {
		last = &batch{notifications: append(make([]notification, 0, most), last.notifications...), joined: true}
		p.batches[n-1] = last
	}
	last.notifications, last.after = append(last.notifications, b.notifications...), b.after
}

// blocked reports whether the handler's lag has just exceeded the buffer, so that
// the source must wait.
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

// take returns the next delivery; false if there is none. It builds the delivery
// without the lock.
func (p *pending) take() (delivery, bool) {
	p.mu.Lock()
	left, build := p.next()
	if build == nil {
		p.mu.Unlock()
		return delivery{}, false
	}
	p.left.Store(int64(left))
	p.mu.Unlock()
	next := build()
	p.left.Store(int64(next.n))
	return next, true
}

// next chooses the next delivery and returns the function that builds it, nil if there
// is none, and how many notifications count as left until then.
func (p *pending) next() (left int, build func() delivery) {
	again := p.resync && (!p.replaying || !p.changed()) // not twice in a row if there are changes
	p.replaying = p.start != nil || again
	switch {
	case p.start != nil:
		return 1, p.takeStart()
	case again:
		p.resync = false
		known := p.known
		return 1, func() delivery { return deliverState(known, resynced) }
	case len(p.batches) > 0:
		first := p.batches[0]
		p.batches[0] = nil
		p.batches, p.queued = p.batches[1:], p.queued-len(first.notifications)
		p.known = first.after
		return len(first.notifications), func() delivery { return deliver(first.notifications) }
	case p.merged != nil:
		merged := p.merged
		p.known, p.merged, p.newest = p.newest, nil, nil
		return 1, func() delivery { return deliver(merged.notifications()) }
	case p.newest != nil:
		known, newest := p.known, p.newest
		p.known, p.newest = newest, nil
		return 1, func() delivery { return deliver(p.transform.difference(known, newest)) }
	}
	return 0, nil
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

// ahead returns the number of pending changes. The rest of a whole state that is
// being delivered does not count, since it does not grow with changes.
func (p *pending) ahead() int {
	if p.replaying {
		return p.queued
	}
	return p.queued + int(p.left.Load())
}

// lag returns the number of pending notifications. A pending comparison with the
// newest state counts as one.
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

// released reports, once, that the informer need no longer wait.
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

// requestResync delivers all objects again, if the handler has started.
func (p *pending) requestResync() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resync = p.known != nil
}
