package queue

import "time"

// Clock is where a [WorkQueue] has its time from: an engine's Host.Clock(), or
// RealClock of package actors. All methods must be safe for concurrent use.
type Clock interface {
	// Now returns the current time.
	Now() time.Time
	// AfterFunc calls f once, when d has passed, on a goroutine of the clock's
	// choosing and not before AfterFunc has returned. f does not block.
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is a call that a [Clock] has been asked to make. It is an alias, so that
// clocks of other packages, with the same method, fit.
type Timer = interface {
	// Stop prevents the call, unless it has begun, and reports whether it did.
	Stop() bool
}
