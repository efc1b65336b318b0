package expiry

import (
	"time"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/usercode"
)

// Never is the time at which an alarm does not ring.
var Never time.Time

// LookAgain is how long an alarm waits at most while objects expire by the wall clock: a timer runs on the
// monotonic clock, and nothing reports that the wall clock was set.
const LookAgain = time.Minute

// Now returns the time. The error is a panic of the clock, which may be the user's.
func Now(c clock.Clock) (now time.Time, err error) {
	err = usercode.Call("Clock.Now", "", func() { now = c.Now() })
	return now, err
}

// Alarm calls a function at one time in the future, by one timer. Its methods are
// called with the backend's lock held, and the function takes that lock.
type Alarm struct {
	clock clock.Clock
	ring  func()
	at    time.Time
	// impatient: the timer ends after LookAgain at most.
	impatient bool
	timer     clock.Timer
}

// NewAlarm returns an alarm that calls ring, and is not set.
func NewAlarm(c clock.Clock, ring func()) Alarm { return Alarm{clock: c, ring: ring} }

// Set makes the alarm ring at that time and no other. If the clock panics, the alarm is not
// set, and the next Set tries again.
func (a *Alarm) Set(at time.Time) { a.set(at, false) }

// SetTo makes the alarm ring when the first object of q expires, as seen from now. While q has objects
// that expire by the wall clock it rings after [LookAgain] at the latest, when perhaps none has expired.
func (a *Alarm) SetTo(q *Queue, now time.Time) { a.set(q.Earliest(now), q.byWall()) }

func (a *Alarm) set(at time.Time, impatient bool) {
	if !at.Equal(a.at) || impatient != a.impatient {
		a.arm(at, impatient)
	}
}

// arm replaces the timer.
func (a *Alarm) arm(at time.Time, impatient bool) {
	timer := a.timer
	a.at, a.impatient, a.timer = Never, impatient, nil
	panicked := usercode.Call("Clock.AfterFunc", "", func() {
		if timer != nil {
			timer.Stop()
		}
		if !at.IsZero() {
			wait := max(0, at.Sub(a.clock.Now()))
			if impatient {
				wait = min(wait, LookAgain)
			}
			a.timer = a.clock.AfterFunc(wait, a.ring)
		}
	})
	if panicked == nil {
		a.at = at
	}
}

// SetIn is Set to a time from now.
func (a *Alarm) SetIn(d time.Duration) {
	if now, err := Now(a.clock); err == nil {
		a.Set(now.Add(d))
	}
}

// IsSet reports whether the alarm is going to ring.
func (a *Alarm) IsSet() bool { return !a.at.IsZero() }

// Rang records that ring was called. The next Set then arms a new timer even for the
// same time, since the clock may have been set back.
func (a *Alarm) Rang() { a.Set(Never) }
