package explore

import (
	"time"

	"github.com/watchmill/watchmill/actors"
)

// epoch is when every world begins.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// clock is a virtual clock whose timers are seen in the trace.
type clock struct {
	*actors.VirtualClock
	trace *trace
}

func newClock(t *trace) *clock { return &clock{actors.NewVirtualClock(epoch), t} }

// AfterFunc arms a timer.
func (c *clock) AfterFunc(d time.Duration, f func()) actors.Timer {
	return c.VirtualClock.AfterFunc(d, func() {
		c.trace.timer(c.Now().Sub(epoch))
		f()
	})
}

// toNext lets the time pass until the next timer, if one is due within limit,
// and reports whether it did.
func (c *clock) toNext(limit time.Duration) (passed time.Duration, ok bool) {
	next, armed := c.Next()
	if passed = max(0, next.Sub(c.Now())); !armed || passed > limit {
		return 0, false
	}
	c.Advance(passed)
	return passed, true
}
