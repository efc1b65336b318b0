package watcher

import (
	"context"
	"errors"
	"fmt"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// Why a watch ended. Match them with [errors.Is].
var (
	// ErrStopped: the consumer called Stop, or its context is done (then the
	// context's cause is wrapped too).
	ErrStopped = errors.New("watch stopped")
	// ErrExpired: the watch fell out of the window; the error is a
	// [*store.ExpiredError].
	ErrExpired = store.ErrExpired
	// ErrSlowConsumer: the policy is Terminate and the time budget that slow
	// watches share is used up.
	ErrSlowConsumer = errors.New("watch terminated: consumer too slow")
	// ErrHandlerPanic: the handler panicked; the error is a [*PanicError].
	ErrHandlerPanic = errors.New("watch handler panicked")
	// ErrHandler: the handler returned errors for as often as its [ErrorPolicy]
	// permits; the error is a [*HandlerError].
	ErrHandler = errors.New("watch handler failed")
	// ErrDeadline: the watch's timeout passed. It is a [context.DeadlineExceeded]
	// too, and a timeout as package net has them.
	ErrDeadline = error(deadlineError{})
	// ErrEngineClosed: the engine was closed.
	ErrEngineClosed = errors.New("engine closed")
)

// Errors of wrong use of a watch.
var (
	// ErrNilHandler: Handle was given no function.
	ErrNilHandler = errors.New("handler is nil: pass a function that takes an event")
	// ErrConsumerConflict: the watch already has a consumer of another kind.
	ErrConsumerConflict = errors.New("watch already has a consumer: use one of Next, Events, Batches, Chan or Handle")
)

// EndError is why a watch ended, with the watch's name: what [Watch.Err] returns.
type EndError struct {
	// Watch is what the watch is called.
	Watch usercode.Name
	// Reason is why it ended, for errors.Is and errors.As.
	Reason error
}

// Error returns the watch's name, if it has one, and the reason.
func (e *EndError) Error() string {
	if e.Watch == (usercode.Name{}) {
		return e.Reason.Error()
	}
	return e.Watch.String() + ": " + e.Reason.Error()
}

// Unwrap returns the reason.
func (e *EndError) Unwrap() error { return e.Reason }

// Timeout reports whether the reason is a timeout, as errors of package net do.
func (e *EndError) Timeout() bool { return errors.Is(e.Reason, ErrDeadline) }

// PanicError is the reason that a watch ended whose handler panicked.
type PanicError struct {
	// Revision and Key name the event that was being handled. Both are zero if other code
	// failed, such as Metrics, or if the consumer is a channel.
	Revision store.Revision
	Key      string
	// Value is what was passed to panic.
	Value any
	// Stack is the stack of the panic.
	Stack []byte
}

func (e *PanicError) Error() string {
	if e.Revision == 0 {
		return fmt.Sprintf("watch could not deliver: %v", e.Value)
	}
	return fmt.Sprintf("watch handler panicked on %q at revision %d: %v", e.Key, e.Revision, e.Value)
}

// Is makes errors.Is(err, ErrHandlerPanic) true.
func (e *PanicError) Is(target error) bool { return target == ErrHandlerPanic }

// Unwrap returns the panic's value if it was an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// HandlerError says which event a handler has failed to handle.
type HandlerError struct {
	// Revision and Key name the event.
	Revision store.Revision
	Key      string
	// Attempts is how often the handler was called with it.
	Attempts int
	// Err is what the handler returned last, or a [*PanicError].
	Err error
}

func (e *HandlerError) Error() string {
	times := ""
	if e.Attempts > 1 {
		times = fmt.Sprintf(" %d times", e.Attempts)
	}
	return fmt.Sprintf("watch handler failed%s on %q at revision %d: %v", times, e.Key, e.Revision, e.Err)
}

// Is makes errors.Is(err, ErrHandler) true.
func (e *HandlerError) Is(target error) bool { return target == ErrHandler }

// Unwrap returns what the handler returned.
func (e *HandlerError) Unwrap() error { return e.Err }

// ByHandler reports whether why, what [Watch.Err] returned, is that the watch's handler
// or notify function has failed, and whether it has panicked. The user's error, or the
// panic's value, may be the end of another watch, which errors.Is would take for this one's.
func ByHandler(why error) (failed, panicked bool) {
	if end, ok := why.(*EndError); ok {
		why = end.Reason
	}
	switch e := why.(type) {
	case *PanicError, *usercode.PanicError:
		return true, true
	case *HandlerError:
		_, panicked = e.Err.(*PanicError)
		return true, panicked
	}
	return false, false
}

// stoppedBy returns the end of a watch whose context was done.
func stoppedBy(cause error) error { return fmt.Errorf("%w: %w", ErrStopped, cause) }

// deadlineError is the type of ErrDeadline.
type deadlineError struct{}

func (deadlineError) Error() string { return "watch deadline reached" }

// Timeout makes it a timeout for callers that ask for that method.
func (deadlineError) Timeout() bool { return true }

// Is makes errors.Is(ErrDeadline, context.DeadlineExceeded) true.
func (deadlineError) Is(target error) bool { return target == context.DeadlineExceeded }
