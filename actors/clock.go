package actors

import (
	"sync/atomic"
	"time"
)

// Clock is where time comes from. All methods are safe for concurrent use.
type Clock interface {
	// Now returns the current time.
	Now() time.Time
	// AfterFunc calls f once, when d has passed, on a goroutine of the clock's
	// choosing. f must not block; typically it Tells or Wakes an actor. A d of
	// zero or less means as soon as possible, but never before AfterFunc has
	// returned on a [VirtualClock].
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is a call that a [Clock] has been asked to make. It is an alias so that
// a Clock fits wherever one of the same shape is asked for, such as by a storage
// backend, which knows nothing of actors.
type Timer = interface {
	// Stop prevents the call and reports whether it did: false if the call has
	// begun or the timer was stopped before.
	Stop() bool
}

// RealClock returns the clock of package time.
func RealClock() Clock { return realClock{} }

type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }

func (realClock) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }

// countedClock counts the timers of a clock that are armed: neither fired nor
// stopped. It also contains panics in their functions, which would otherwise
// end the process.
type countedClock struct {
	Clock
	armed  atomic.Int64
	failed func(reason any, stack []byte)
}

func newCountedClock(c Clock, failed func(reason any, stack []byte)) *countedClock {
	if c == nil {
		c = RealClock()
	}
	return &countedClock{Clock: c, failed: failed}
}

type countedTimer struct {
	clock *countedClock
	timer Timer
}

func (c *countedClock) AfterFunc(d time.Duration, f func()) Timer {
	c.armed.Add(1)
	armed := false
	defer func() {
		if !armed { // the clock, which may be the user's, panicked
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
