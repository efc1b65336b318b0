package clocktest

import (
	"time"

	"github.com/watchmill/watchmill/clock"
)

// rapid is the number of timers from which on a [Counting] delays them.
const rapid = 1000

// Counting is a virtual clock that counts the timers it is asked for. It ends a rapid succession of
// them, which would keep Advance from returning. Only one goroutine at a time may use it.
type Counting struct {
	*clock.Virtual
	Timers int
}

// AfterFunc counts a timer. After a thousand each takes an hour.
func (c *Counting) AfterFunc(d time.Duration, f func()) clock.Timer {
	if c.Timers++; c.Timers > rapid {
		d = time.Hour
	}
	return c.Virtual.AfterFunc(d, f)
}
