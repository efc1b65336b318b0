package controller

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/usercode"
)

// The errors of this package. Match them with errors.Is.
var (
	// ErrConfig: the configuration is wrong. The error is an [*engine.ConfigError].
	ErrConfig = engine.ErrConfig
	// ErrClosed: the controller was closed, or its host. It is the cause of the contexts of
	// calls that run then.
	ErrClosed = errors.New("controller closed")
	// ErrReconcile: Reconcile failed. The error is a [*ReconcileError].
	ErrReconcile = errors.New("reconcile failed")
	// ErrStillRunning: Close gave up waiting. The error is a [*CloseError].
	ErrStillRunning = engine.ErrStillRunning
)

// errHostClosed is the ErrClosed of a controller that nothing has closed but its host.
var errHostClosed = fmt.Errorf("%w: its host is closed", ErrClosed)

// ReconcileError is a call of Reconcile that failed.
type ReconcileError struct {
	// Controller is its name, Key what the call was about.
	Controller, Key string
	// Attempts is how many calls in a row have failed for the key.
	Attempts int
	// GivenUp: the key is not tried again for this failure; see [Config].MaxAttempts.
	// Otherwise it is after RetryAfter, or when an earlier delay of the key is over.
	GivenUp    bool
	RetryAfter time.Duration
	// Err is what Reconcile returned, or its panic as a [*usercode.PanicError].
	Err error
}

// Error says what failed and what follows.
func (e *ReconcileError) Error() string {
	next := fmt.Sprintf("again in %v", e.RetryAfter)
	if e.GivenUp {
		next = "given up"
	}
	return fmt.Sprintf("controller %s: %q failed, attempt %d, %s: %v", e.Controller, e.Key, e.Attempts, next, e.Err)
}

// Is makes errors.Is(err, ErrReconcile) true.
func (e *ReconcileError) Is(target error) bool { return target == ErrReconcile }

// Unwrap returns the cause.
func (e *ReconcileError) Unwrap() error { return e.Err }

// logged returns the failure as a line of the log.
func (e *ReconcileError) logged() (message string, about []any) {
	message = "reconcile failed, and the key is given up"
	about = []any{"controller", e.Controller, "key", e.Key, "attempts", e.Attempts, "error", e.Err}
	if !e.GivenUp {
		message = "reconcile failed and will be called again"
		about = append(about, "pause", e.RetryAfter)
	}
	var panicked *usercode.PanicError
	if errors.As(e.Err, &panicked) {
		about = append(about, "stack", string(panicked.Stack))
	}
	return message, about
}

// CloseError says which calls of Reconcile had not returned when Close gave up.
type CloseError struct {
	Controller string
	// Keys are those that the calls are about, sorted.
	Keys []string
	// Cause is why Close did not go on waiting.
	Cause error
}

// Error names the keys, if there are any: Keys or OnError may also hold up Close.
func (e *CloseError) Error() string {
	if len(e.Keys) == 0 {
		return fmt.Sprintf("close controller %s: %v", e.Controller, e.Cause)
	}
	return fmt.Sprintf("close controller %s: still reconciling %s: %v", e.Controller, strings.Join(e.Keys, ", "), e.Cause)
}

// Is makes errors.Is(err, ErrStillRunning) true.
func (e *CloseError) Is(target error) bool { return target == ErrStillRunning }

// Unwrap returns the cause.
func (e *CloseError) Unwrap() error { return e.Cause }
