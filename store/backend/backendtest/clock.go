package backendtest

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/watchmill/watchmill/store/backend"
)

// Clock is a [backend.Clock] that stands still until it is told to move. It is
// safe for concurrent use.
type Clock struct {
	mu     sync.Mutex
	now    time.Time
	armed  int // timers ever made, for the order among those of one time
	timers []*timer
}

type timer struct {
	clock *Clock
	due   time.Time
	order int
	call  func()
}

// NewClock returns a clock that shows some time in 2024.
func NewClock() *Clock {
	return &Clock{now: time.Date(2024, time.April, 17, 12, 0, 0, 0, time.UTC)}
}

// Now returns the time that the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// AfterFunc makes Advance call f once d has passed.
func (c *Clock) AfterFunc(d time.Duration, f func()) backend.Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.armed++
	t := &timer{clock: c, due: c.now.Add(max(0, d)), order: c.armed, call: f}
	c.timers = append(c.timers, t)
	return t
}

// Advance moves the clock on by d and calls what falls due on the caller's
// goroutine, in order, each at its time. It must not be called from what it
// calls. A negative d sets the clock back: then nothing falls due, and timers
// ring when the clock shows their time again.
func (c *Clock) Advance(d time.Duration) {
	until := c.Now().Add(d)
	for {
		call := c.popDue(until)
		if call == nil {
			break
		}
		call()
	}
	c.mu.Lock()
	c.now = until
	c.mu.Unlock()
}

// Pending returns the number of timers that have neither rung nor been stopped.
func (c *Clock) Pending() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.timers)
}

// popDue moves the clock to the first timer due by until, and returns its
// function; nil if there is none.
func (c *Clock) popDue(until time.Time) func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.timers) == 0 {
		return nil
	}
	first := slices.MinFunc(c.timers, func(a, b *timer) int {
		return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.order, b.order))
	})
	if first.due.After(until) {
		return nil
	}
	c.forget(first)
	if first.due.After(c.now) {
		c.now = first.due
	}
	return first.call
}

// forget removes t and reports whether it was there. The caller holds the lock.
func (c *Clock) forget(t *timer) bool {
	i := slices.Index(c.timers, t)
	if i < 0 {
		return false
	}
	c.timers = slices.Delete(c.timers, i, i+1)
	return true
}

// Stop keeps the timer from ringing, and reports whether it did.
func (t *timer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	return t.clock.forget(t)
}
