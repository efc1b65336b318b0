package timing

import (
	"sync/atomic"
	"time"

	"github.com/watchmill/watchmill/clock"
)

// Clock is the real clock plus jumps. The zero value has made none.
type Clock struct{ ahead atomic.Int64 }

// Now returns the time that the clock shows.
func (c *Clock) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// AfterFunc calls f after the real time d, since a jump of the wall clock moves no timer.
func (c *Clock) AfterFunc(d time.Duration, f func()) clock.Timer { return time.AfterFunc(d, f) }

// Jump moves the clock by d, which may be negative.
func (c *Clock) Jump(d time.Duration) { c.ahead.Add(int64(d)) }
