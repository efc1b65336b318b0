package explore

import (
	"time"

	"github.com/watchmill/watchmill/clock"
)

// epoch is the time at which every world begins.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// tracedClock is a virtual clock that adds the timers that fire to the trace.
type tracedClock struct {
	*clock.Virtual
	trace *trace
}

func newTracedClock(t *trace) *tracedClock { return &tracedClock{clock.NewVirtual(epoch), t} }

// AfterFunc arms a timer that is traced when it fires.
func (c *tracedClock) AfterFunc(d time.Duration, f func()) clock.Timer {
	return c.Virtual.AfterFunc(d, func() {
		c.trace.timer(c.Now().Sub(epoch))
		f()
	})
}

// toNext lets time pass until the next timer, if one is due within limit, and reports how
// much and whether it did.
func (c *tracedClock) toNext(limit time.Duration) (passed time.Duration, ok bool) {
	next, armed := c.Next()
	if passed = max(0, next.Sub(c.Now())); !armed || passed > limit {
		return 0, false
	}
	c.Advance(passed)
	return passed, true
}
