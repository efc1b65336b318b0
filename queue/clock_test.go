package queue_test

import (
	"slices"
	"time"

	"github.com/watchmill/watchmill/queue"
)

// manualClock is a clock that a single goroutine sets; it calls what is due from
// there.
type manualClock struct {
	now    time.Time
	timers []*manualTimer
}

type manualTimer struct {
	clock *manualClock
	at    time.Time
	call  func()
}

func (c *manualClock) Now() time.Time { return c.now }

func (c *manualClock) AfterFunc(d time.Duration, f func()) queue.Timer {
	timer := &manualTimer{c, c.now.Add(d), f}
	c.timers = append(c.timers, timer)
	return timer
}

func (t *manualTimer) Stop() bool {
	before := len(t.clock.timers)
	t.clock.timers = slices.DeleteFunc(t.clock.timers, func(other *manualTimer) bool { return other == t })
	return len(t.clock.timers) < before
}

// advance lets d go by.
func (c *manualClock) advance(d time.Duration) {
	end := c.now.Add(d)
	for {
		next := c.earliest()
		if next == nil || next.at.After(end) {
			c.now = end
			return
		}
		next.Stop()
		c.now = next.at
		next.call()
	}
}

func (c *manualClock) earliest() *manualTimer {
	if len(c.timers) == 0 {
		return nil
	}
	return slices.MinFunc(c.timers, func(a, b *manualTimer) int { return a.at.Compare(b.at) })
}
