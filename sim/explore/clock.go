package explore

import (
	"time"

	"github.com/watchmill/watchmill/clock"
)

// epoch is when every world begins.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// tracedClock is a virtual clock whose timers are seen in the trace.
type tracedClock struct {
	*clock.Virtual
	trace *trace
}

func newTracedClock(t *trace) *tracedClock { return &tracedClock{clock.NewVirtual(epoch), t} }

// AfterFunc arms a timer.
func (c *tracedClock) AfterFunc(d time.Duration, f func()) clock.Timer {
	return c.Virtual.AfterFunc(d, func() {
		c.trace.timer(c.Now().Sub(epoch))
		f()
	})
}

// toNext lets the time pass until the next timer, if one is due within limit,
// and reports whether it did.
func (c *tracedClock) toNext(limit time.Duration) (passed time.Duration, ok bool) {
	next, armed := c.Next()
	if passed = max(0, next.Sub(c.Now())); !armed || passed > limit {
		return 0, false
	}
	c.Advance(passed)
	return passed, true
}
