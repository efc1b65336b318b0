package actors

import (
	"sync/atomic"
	"time"

	"github.com/watchmill/watchmill/clock"
)

// countedClock counts the timers of a clock that are armed: neither fired nor
// stopped. It also contains panics in their functions, which would otherwise
// end the process.
type countedClock struct {
	clock.Clock
	armed  atomic.Int64
	failed func(reason any, stack []byte)
}

func newCountedClock(c clock.Clock, failed func(reason any, stack []byte)) *countedClock {
	if c == nil {
		c = clock.Real()
	}
	return &countedClock{Clock: c, failed: failed}
}

// countedTimer counts as armed until its function is called, or Stop has returned: a timer that
// has begun by then may yet have to come to its function, on a goroutine of the clock's.
type countedTimer struct {
	clock *countedClock
	timer clock.Timer
	over  atomic.Bool
}

func (c *countedClock) AfterFunc(d time.Duration, f func()) clock.Timer {
	t := &countedTimer{clock: c}
	c.armed.Add(1)
	armed := false
	defer func() {
		if !armed { // the clock may be the user's; it panicked
			t.uncount()
		}
	}()
	t.timer = c.Clock.AfterFunc(d, func() {
		t.uncount()
		var done bool
		defer contain(&done, c.failed)
		f()
		done = true
	})
	armed = true
	return t
}

func (t *countedTimer) Stop() bool {
	stopped := t.timer.Stop()
	t.uncount()
	return stopped
}

// uncount counts the timer no more.
func (t *countedTimer) uncount() {
	if t.over.CompareAndSwap(false, true) {
		t.clock.armed.Add(-1)
	}
}
