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

type countedTimer struct {
	clock *countedClock
	timer clock.Timer
}

func (c *countedClock) AfterFunc(d time.Duration, f func()) clock.Timer {
	c.armed.Add(1)
	armed := false
	defer func() {
		if !armed { // the clock may be the user's; it panicked
			c.armed.Add(-1)
		}
	}()
	t := countedTimer{c, c.Clock.AfterFunc(d, func() {
		c.armed.Add(-1)
		var done bool
		defer contain(&done, c.failed)
		f()
		done = true
	})}
	armed = true
	return t
}

func (t countedTimer) Stop() bool {
	stopped := t.timer.Stop()
	if stopped {
		t.clock.armed.Add(-1)
	}
	return stopped
}
