package memory

import (
	"time"

	"github.com/watchmill/watchmill/clock"
)

// never is the time at which an alarm does not ring.
var never time.Time

// alarm calls ring at one time to come, with one timer. Its methods are called
// with the backend's lock held, which ring takes.
type alarm struct {
	clock clock.Clock
	ring  func()
	at    time.Time
	timer clock.Timer
}

// set makes the alarm ring at that time and no other.
func (a *alarm) set(at time.Time) {
	if at.Equal(a.at) {
		return
	}
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
	a.at = at
	if !at.IsZero() {
		a.timer = a.clock.AfterFunc(max(0, at.Sub(a.clock.Now())), a.ring)
	}
}

// isSet reports whether the alarm is going to ring.
func (a *alarm) isSet() bool { return !a.at.IsZero() }

// rang is for ring to say that it was called: the next set arms a new timer
// even for the same time, since the clock may have been set back.
func (a *alarm) rang() { a.set(never) }
