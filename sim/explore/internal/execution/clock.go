package execution

import (
	"time"

	"github.com/watchmill/watchmill/clock"
)

// epoch is the time at which every world begins.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Clock is a virtual clock that adds the timers that fire to the trace.
type Clock struct {
	*clock.Virtual
	trace *Trace
}

// NewClock returns a clock that shows the time at which every world begins.
func NewClock(t *Trace) *Clock { return &Clock{clock.NewVirtual(epoch), t} }

// AfterFunc arms a timer that is traced when it fires.
func (c *Clock) AfterFunc(d time.Duration, f func()) clock.Timer {
	return c.Virtual.AfterFunc(d, func() {
		c.trace.timer(c.Now().Sub(epoch))
		f()
	})
}

// AdvanceToNext lets time pass until the next timer, if one is due within limit, and
// reports how much and whether it did.
func (c *Clock) AdvanceToNext(limit time.Duration) (passed time.Duration, ok bool) {
	next, armed := c.Next()
	if passed = max(0, next.Sub(c.Now())); !armed || passed > limit {
		return 0, false
	}
	c.Advance(passed)
	return passed, true
}
