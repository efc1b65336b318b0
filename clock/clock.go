package clock

import "time"

// Clock is a source of time. All methods are safe for concurrent use. It never gains methods.
type Clock interface {
	// Now returns the current time.
	Now() time.Time
	// AfterFunc makes the clock call f once, when d has passed, on a goroutine of the clock's
	// choosing. f must not block, except that storage on a disk may wait for that. A d of
	// zero or less means as soon as possible. AfterFunc does not call f itself, so it may be
	// called with locks held that f takes; but f may run before AfterFunc has returned.
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is a pending call of a [Clock]. It is an alias, so that a clock whose
// timers have another package's name for this interface is a Clock, too.
type Timer = interface {
	// Stop prevents the call and reports whether it did: false if the call has
	// begun or the timer was stopped before.
	Stop() bool
}

// Stop stops the timer in *t, if there is one, and sets *t to nil, even if the timer, which may be
// the user's, panics.
func Stop(t *Timer) {
	if stopped := *t; stopped != nil {
		*t = nil
		stopped.Stop()
	}
}

// Real returns the clock of package time. Its functions run on goroutines of the
// Go runtime's timers.
func Real() Clock { return realClock{} }

type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }

func (realClock) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }
