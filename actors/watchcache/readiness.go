package watchcache

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// State is whether the cache can serve.
type State uint8

// The states. Pending and Ready alternate, until the source has Ended for good; Stopped is the
// last.
const (
	Pending State = iota
	Ready
	Ended
	Stopped
)

var stateNames = [...]string{"Pending", "Ready", "Ended", "Stopped"}

// String returns the state's name.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// Errors of a cache that cannot serve.
var (
	// ErrNotReady: the cache has no state yet, its source is unavailable, or its
	// state was found to be wrong. The error is a [*NotReadyError].
	ErrNotReady = errors.New("cache not ready")
	// ErrFailed: the cache's actor failed and the cache relists. It is the cause
	// of an [ErrNotReady].
	ErrFailed = errors.New("cache failed and is restarting")
	// ErrStopped: the cache was stopped.
	ErrStopped = errors.New("cache stopped")
)

// NotReadyError says why the cache cannot serve and when to try again.
type NotReadyError struct {
	// RetryAfter grows with the time that the cache has been Pending, from 1 s to
	// 30 s, to spread the clients' retries.
	RetryAfter time.Duration
	// Cause is why the cache is Pending; nil while it reads the state, and with a warm start
	// the history, that storage had at the start.
	Cause error
	// Final: the source has ended for good, as one that is closed, and the cache never
	// becomes Ready again. Trying again does not help.
	Final bool
}

func (e *NotReadyError) Error() string {
	if e.Final {
		return fmt.Sprintf("storage has ended for good: %v", e.Cause)
	}
	why := any("the cache has not read the state that storage had at the start")
	if e.Cause != nil {
		why = e.Cause
	}
	return fmt.Sprintf("storage is (re)initializing: %v: retry after %v", why, e.RetryAfter)
}

// Is makes errors.Is(err, ErrNotReady) true.
func (e *NotReadyError) Is(target error) bool { return target == ErrNotReady }

// Unwrap returns the cause.
func (e *NotReadyError) Unwrap() error { return e.Cause }

// readiness is the cache's State with its cause and age. It is an immutable
// value: each change makes a new one.
type readiness struct {
	state State
	// generation counts the times that the cache became Ready.
	generation uint64
	// since is when state last changed.
	since time.Time
	// cause is why it is Pending or Ended.
	cause error
	// wrong: the state was found to be wrong, and the cache has not been Ready since.
	wrong bool
}

// ready returns r changed to Ready, if it is Pending.
func (r readiness) ready(now time.Time) readiness {
	if r.state != Pending {
		return r
	}
	return readiness{state: Ready, generation: r.generation + 1, since: now}
}

// pending returns r changed to Pending because of cause. A cache that is Pending
// already keeps its since and takes the newer cause. One that is Ended or Stopped stays as
// it is.
func (r readiness) pending(now time.Time, cause error) readiness {
	switch r.state {
	case Ended, Stopped:
		return r
	case Pending:
		r.cause = cause
		return r
	}
	return readiness{state: Pending, generation: r.generation, since: now, cause: cause}
}

// distrusted returns r changed to Pending because of cause, by which the state is wrong. It
// is so whatever the cause becomes while the cache waits for the list.
func (r readiness) distrusted(now time.Time, cause error) readiness {
	r = r.pending(now, cause)
	r.wrong = true
	return r
}

// ended returns r changed to Ended because of cause, unless it is Ended or Stopped.
func (r readiness) ended(now time.Time, cause error) readiness {
	if r.state == Ended || r.state == Stopped {
		return r
	}
	return readiness{state: Ended, generation: r.generation, since: now, cause: cause, wrong: r.wrong}
}

// stopped returns r changed to Stopped.
func (r readiness) stopped(now time.Time) readiness {
	if r.state == Stopped {
		return r
	}
	return readiness{state: Stopped, generation: r.generation, since: now}
}

// check returns nil if the cache can serve, otherwise the reason.
func (r readiness) check(now time.Time) error {
	switch r.state {
	case Ready:
		return nil
	case Stopped:
		return ErrStopped
	}
	return &NotReadyError{RetryAfter: retryAfter(now.Sub(r.since)), Cause: r.cause, Final: r.state == Ended}
}

// retryAfter is the API server's curve: e^(0.06·seconds down), whole seconds,
// from 1 to 30.
func retryAfter(down time.Duration) time.Duration {
	seconds := math.Exp(0.06 * down.Seconds())
	return time.Duration(min(max(math.Floor(seconds), 1), 30)) * time.Second
}
