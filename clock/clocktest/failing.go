package clocktest

import (
	"runtime"
	"sync"
	"time"

	"github.com/watchmill/watchmill/clock"
)

// Call is a method of a clock.
type Call string

// The methods that can fail.
const (
	Now       Call = "Now"
	AfterFunc Call = "AfterFunc"
	// Stop is that of the clock's timers. When it fails the timer goes on.
	Stop Call = "Stop"
)

// Failing is a clock that panics when it is told to, as a user's clock may. It is safe for
// concurrent use.
type Failing struct {
	clock.Clock
	// Counts, if not nil, says which calls count; others do not fail. The duration is that
	// of AfterFunc, zero for the others.
	Counts func(call Call, d time.Duration) bool
	// Exits makes it end the goroutine, as t.FailNow does, in place of a panic.
	Exits bool

	mu    sync.Mutex
	plans map[Call]plan
}

// plan is how many calls do not fail, and how many after them do.
type plan struct{ skip, fail int }

// Fail makes a method panic the next times that it is called, after that many calls that do
// not fail. It replaces what it was told before about that method.
func (c *Failing) Fail(call Call, after, times int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.plans == nil {
		c.plans = map[Call]plan{}
	}
	c.plans[call] = plan{skip: after, fail: times}
}

// Left returns how many times a method is still to panic.
func (c *Failing) Left(call Call) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.plans[call].fail
}

// Now returns the time of the clock, or panics.
func (c *Failing) Now() time.Time {
	c.called(Now, 0)
	return c.Clock.Now()
}

// AfterFunc arms a timer of the clock, or panics.
func (c *Failing) AfterFunc(d time.Duration, f func()) clock.Timer {
	c.called(AfterFunc, d)
	return failingTimer{c.Clock.AfterFunc(d, f), c}
}

// failingTimer is a timer of a clock that may fail to stop it.
type failingTimer struct {
	clock.Timer
	clock *Failing
}

func (t failingTimer) Stop() bool {
	t.clock.called(Stop, 0)
	return t.Timer.Stop()
}

func (c *Failing) called(call Call, d time.Duration) {
	if !c.due(call, d) {
		return
	}
	if c.Exits {
		runtime.Goexit()
	}
	panic("the clock fails: " + string(call))
}

// due counts a call, and reports whether it is to panic.
func (c *Failing) due(call Call, d time.Duration) bool {
	if c.Left(call) == 0 || c.Counts != nil && !c.Counts(call, d) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.plans[call]
	fails := p.skip == 0 && p.fail > 0
	switch {
	case fails:
		p.fail--
	case p.skip > 0:
		p.skip--
	}
	c.plans[call] = p
	return fails
}
