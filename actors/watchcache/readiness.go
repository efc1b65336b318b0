package watchcache

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// State is whether the cache can serve.
type State uint8

// The states. Pending and Ready alternate; Stopped is the last.
const (
	Pending State = iota
	Ready
	Stopped
)

func (s State) String() string { return [...]string{"Pending", "Ready", "Stopped"}[s] }

// Errors of a cache that cannot serve.
var (
	// ErrNotReady: the cache has no state yet, has lost its source, or has found
	// its state to be wrong. The error is a [*NotReadyError].
	ErrNotReady = errors.New("cache not ready")
	// ErrFailed: the cache failed and lists again. It is the cause of an
	// [ErrNotReady].
	ErrFailed = errors.New("cache failed and is brought back")
	// ErrStopped: the cache was stopped.
	ErrStopped = errors.New("cache stopped")
)

// NotReadyError says why the cache cannot serve and when to try again.
type NotReadyError struct {
	// RetryAfter grows with the time that the cache has been down, from 1 s to
	// 30 s, so that clients do not all come at once.
	RetryAfter time.Duration
	// Cause is what keeps the cache from being ready; nil at first.
	Cause error
}

func (e *NotReadyError) Error() string {
	msg := "storage is (re)initializing"
	if e.Cause != nil {
		msg = fmt.Sprintf("%s: %v", msg, e.Cause)
	}
	return fmt.Sprintf("%s: retry after %v", msg, e.RetryAfter)
}

// Is makes errors.Is(err, ErrNotReady) true.
func (e *NotReadyError) Is(target error) bool { return target == ErrNotReady }

// Unwrap returns the cause.
func (e *NotReadyError) Unwrap() error { return e.Cause }

// readiness is the cache's state with its history. It is an immutable value:
// each change makes a new one.
type readiness struct {
	state State
	// generation counts the times that the cache became Ready.
	generation uint64
	// since is when state last changed.
	since time.Time
	// cause is why it is Pending.
	cause error
}

// ready returns the readiness after the cache can serve. Being Ready already
// changes nothing; Stopped stays.
func (r readiness) ready(now time.Time) readiness {
	if r.state != Pending {
		return r
	}
	return readiness{state: Ready, generation: r.generation + 1, since: now}
}

// pending returns the readiness after the cache cannot serve because of cause.
// A cache that was Pending already stays so since then, with the newer cause.
func (r readiness) pending(now time.Time, cause error) readiness {
	switch r.state {
	case Stopped:
		return r
	case Pending:
		r.cause = cause
		return r
	}
	return readiness{state: Pending, generation: r.generation, since: now, cause: cause}
}

// stopped returns the readiness of a cache that will not serve again.
func (r readiness) stopped(now time.Time) readiness {
	if r.state == Stopped {
		return r
	}
	return readiness{state: Stopped, generation: r.generation, since: now}
}

// check returns nil if the cache can serve, otherwise why not.
func (r readiness) check(now time.Time) error {
	switch r.state {
	case Ready:
		return nil
	case Stopped:
		return ErrStopped
	}
	return &NotReadyError{RetryAfter: retryAfter(now.Sub(r.since)), Cause: r.cause}
}

// retryAfter is the API server's curve: e^(0.06·seconds down), whole seconds,
// from 1 to 30.
func retryAfter(down time.Duration) time.Duration {
	seconds := math.Exp(0.06 * down.Seconds())
	return time.Duration(min(max(math.Floor(seconds), 1), 30)) * time.Second
}
