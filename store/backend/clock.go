package backend

import "time"

// Clock is the time that a backend lives by: when something was written, and
// when something with a TTL expires.
//
// It is an alias of an interface literal, as [Timer] is, so that any clock with
// these two methods fits whatever package names the types: AfterFunc must
// return exactly interface{ Stop() bool } or an alias of it. A clock whose
// AfterFunc returns a named type of its own needs an adapter.
//
// AfterFunc calls f once, d from now, from any goroutine but never from within
// AfterFunc itself. Both methods are called with locks held, so they must not
// call the backend.
type Clock = interface {
	Now() time.Time
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is a call to come. Stop reports whether it kept the call from
// happening.
type Timer = interface {
	Stop() bool
}

// WallClock is the machine's clock, for a backend that is given no other. Its
// functions run in goroutines of the Go runtime's timers.
func WallClock() Clock { return wallClock{} }

type wallClock struct{}

func (wallClock) Now() time.Time { return time.Now() }

func (wallClock) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }
