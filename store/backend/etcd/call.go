package etcd

import (
	"context"
	"time"

	"github.com/watchmill/watchmill/store"
)

// call is one call of a method. All calls share one timer, and etcd is not told when a
// call ends, so that a call costs two allocations and its context's own: with a context
// with a deadline, each request would have a timer here and one in etcd.
type call struct {
	backend *Backend
	cancel  context.CancelCauseFunc
	// expires is when to cancel the call with errNoAnswer; zero for never.
	expires time.Time
}

// calls are the calls that are going on, so that they can be cancelled. The backend's lock
// guards it.
type calls struct {
	running map[*call]struct{}
	// timer rings when the first call may be overdue, if armed.
	timer *time.Timer
	armed bool
}

func newCalls(ring func()) calls {
	c := calls{running: map[*call]struct{}{}, timer: time.AfterFunc(time.Hour, ring)}
	c.timer.Stop()
	return c
}

// begin starts a call. The returned context ends with the caller's, with the backend, or
// after the request timeout if the caller's has no deadline. The caller must end the call.
func (b *Backend) begin(ctx context.Context) (context.Context, *call, error) {
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	c := &call{backend: b}
	if _, bounded := ctx.Deadline(); !bounded {
		c.expires = time.Now().Add(b.config.RequestTimeout)
	}
	ctx, c.cancel = context.WithCancelCause(ctx)
	if !b.admit(c) {
		c.cancel(nil)
		return nil, nil, store.ErrClosed
	}
	return ctx, c, nil
}

// admit reports whether a call can begin, because b is not closed.
func (b *Backend) admit(c *call) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.running.Add(1)
	b.calls.running[c] = struct{}{}
	if !b.calls.armed && !c.expires.IsZero() {
		b.calls.arm(c.expires)
	}
	return true
}

// end ends the call, which releases its context.
func (c *call) end() {
	b := c.backend
	b.mu.Lock()
	delete(b.calls.running, c)
	b.mu.Unlock()
	c.cancel(nil)
	b.running.Done()
}

// endOverdue cancels the calls that are overdue, and sets the timer to the next. It is
// called when the timer rings.
func (b *Backend) endOverdue() {
	for _, c := range b.overdue(time.Now()) {
		c.cancel(errNoAnswer)
	}
}

func (b *Backend) overdue(now time.Time) []*call {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil // all are cancelled
	}
	return b.calls.overdue(now)
}

// overdue returns the calls that are overdue.
func (c *calls) overdue(now time.Time) (overdue []*call) {
	c.armed = false
	var next time.Time
	for one := range c.running {
		switch at := one.expires; {
		case at.IsZero():
		case !at.After(now):
			overdue = append(overdue, one)
		case next.IsZero() || at.Before(next):
			next = at
		}
	}
	if !next.IsZero() {
		c.arm(next)
	}
	return overdue
}

func (c *calls) arm(at time.Time) {
	c.armed = true
	c.timer.Reset(time.Until(at))
}

// close stops the timer and returns the calls that are going on.
func (c *calls) close() (running []*call) {
	c.timer.Stop()
	for one := range c.running {
		running = append(running, one)
	}
	return running
}
