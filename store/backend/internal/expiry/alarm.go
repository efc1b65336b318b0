package expiry

import (
	"time"

	"github.com/watchmill/watchmill/clock"
)

// Never is the time at which an alarm does not ring.
var Never time.Time

// Alarm calls a function at one time in the future, by one timer. Its methods are
// called with the backend's lock held, and the function takes that lock.
type Alarm struct {
	clock clock.Clock
	ring  func()
	at    time.Time
	timer clock.Timer
}

// NewAlarm returns an alarm that calls ring, and is not set.
func NewAlarm(c clock.Clock, ring func()) Alarm { return Alarm{clock: c, ring: ring} }

// Set makes the alarm ring at that time and no other.
func (a *Alarm) Set(at time.Time) {
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

// IsSet reports whether the alarm is going to ring.
func (a *Alarm) IsSet() bool { return !a.at.IsZero() }

// Rang records that ring was called. The next Set then arms a new timer even for the
// same time, since the clock may have been set back.
func (a *Alarm) Rang() { a.Set(Never) }
