package informer

import (
	"errors"
	"fmt"
	"strings"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/cache"
)

// Errors of calls. Match them with errors.Is.
var (
	// ErrConfig: the configuration is invalid. The error is an
	// [*engine.ConfigError].
	ErrConfig = engine.ErrConfig
	// ErrClosed: the informer was closed, ended with its host, or failed.
	ErrClosed = errors.New("informer closed")
	// ErrNilHandler: the handler is nil.
	ErrNilHandler = errors.New("handler is nil: pass an EventHandler, or a function that takes a notification")
	// ErrRemoved: the handler was removed.
	ErrRemoved = errors.New("handler removed")
	// ErrNotSynced: a wait for an informer or a handler to sync ended before it
	// had. The error is a [*NotSyncedError].
	ErrNotSynced = errors.New("not synced")
	// ErrStillRunning: Close returned before the handlers had ended, since it timed out
	// or was called from a handler or a function of the configuration. The error is a
	// [*CloseError].
	ErrStillRunning = engine.ErrStillRunning
)

// Errors passed to Config.OnError. Match them with errors.Is.
var (
	// ErrSource: the source failed; it is retried. The error is a
	// [*SourceError].
	ErrSource = errors.New("source failed")
	// ErrItem: a function of the configuration failed for one object. The error
	// is an [*ItemError].
	ErrItem = errors.New("object failed")
	// ErrHandlerPanic: a handler panicked, or ended its goroutine. The error is a
	// [*PanicError].
	ErrHandlerPanic = errors.New("handler panicked")
	// ErrSlowHandler: a handler has fallen behind by its buffer. The error is a
	// [*SlowHandlerError].
	ErrSlowHandler = errors.New("handler is slow")
)

// The errors of indexes, which are those of packages store and store/cache.
var (
	// ErrUnknownIndex: there is no index of that name.
	ErrUnknownIndex = store.ErrUnknownIndex
	// ErrIndexConflict: there is an index of that name already.
	ErrIndexConflict = cache.ErrIndexConflict
)

// SourceError is an error of the source.
type SourceError struct {
	// Informer is the name of the informer.
	Informer string
	// Final: the source will not be retried.
	Final bool
	// Err is the error of the source.
	Err error
}

func (e *SourceError) Error() string {
	if e.Final {
		return fmt.Sprintf("informer %s: source failed permanently: %v", e.Informer, e.Err)
	}
	return fmt.Sprintf("informer %s: source failed: %v", e.Informer, e.Err)
}

// Is makes errors.Is(err, ErrSource) true.
func (e *SourceError) Is(target error) bool { return target == ErrSource }

// Unwrap returns the source's error.
func (e *SourceError) Unwrap() error { return e.Err }

// ItemError says for which object a function of the configuration failed.
type ItemError struct {
	// Func is the function that failed: "Transform", "Identity", or the name of
	// an index, as in "Indexers[node]".
	Func string
	// Key and Revision are the object's.
	Key      string
	Revision store.Revision
	// Err is what it returned, or its panic as a [*usercode.PanicError].
	Err error
}

func (e *ItemError) Error() string {
	return fmt.Sprintf("object %q at revision %d: %s: %v", e.Key, e.Revision, e.Func, e.Err)
}

// Is makes errors.Is(err, ErrItem) true.
func (e *ItemError) Is(target error) bool { return target == ErrItem }

// Unwrap returns the cause.
func (e *ItemError) Unwrap() error { return e.Err }

// PanicError says that a handler panicked, or ended its goroutine by runtime.Goexit.
type PanicError struct {
	// Handler is its name.
	Handler string
	// Notification is the one that it panicked on, printed; "" if not known.
	Notification string
	// Err is the panic, as a [*usercode.PanicError], or [usercode.ErrGoexit].
	Err error
}

func (e *PanicError) Error() string {
	if e.Notification == "" {
		return fmt.Sprintf("handler %s failed: %v", e.Handler, e.Err)
	}
	return fmt.Sprintf("handler %s failed on %s: %v", e.Handler, e.Notification, e.Err)
}

// Is makes errors.Is(err, ErrHandlerPanic) true.
func (e *PanicError) Is(target error) bool { return target == ErrHandlerPanic }

// Unwrap returns the cause.
func (e *PanicError) Unwrap() error { return e.Err }

// SlowHandlerError says that a handler's pending notifications exceed its buffer.
// OnError gets it once each time that this happens; the handler continues according
// to its policy.
type SlowHandlerError struct {
	// Handler is its name.
	Handler string
	Policy  Policy
	// Lag is the number of its pending notifications.
	Lag int
}

func (e *SlowHandlerError) Error() string {
	effect := map[Policy]string{
		Merge:      "from here on it gets the newest change of each object",
		Resnapshot: "its pending notifications are dropped, and it will get the difference to the newest state",
		Block:      "the source is held back until it catches up",
	}
	return fmt.Sprintf("handler %s is %d notifications behind: %s", e.Handler, e.Lag, effect[e.Policy])
}

// Is makes errors.Is(err, ErrSlowHandler) true.
func (e *SlowHandlerError) Is(target error) bool { return target == ErrSlowHandler }

// NotSyncedError says which informers and handlers had not synced when the wait
// ended, and why.
type NotSyncedError struct {
	// Laggards are those that had not synced.
	Laggards []Laggard
	// Cause is why waiting ended: ctx's cause, or [engine.ErrIdle] on a deterministic host; nil
	// if a laggard has ended.
	Cause error
}

// Laggard is an informer or a handler that has not synced.
type Laggard struct {
	Name string
	// Err is its last error; nil if there was none.
	Err error
}

func (e *NotSyncedError) Error() string {
	parts := make([]string, len(e.Laggards))
	for i, l := range e.Laggards {
		parts[i] = l.Name
		if l.Err != nil {
			parts[i] += fmt.Sprintf(" (%v)", l.Err)
		}
	}
	text := "not synced: " + strings.Join(parts, ", ")
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

// Is makes errors.Is(err, ErrNotSynced) true.
func (e *NotSyncedError) Is(target error) bool { return target == ErrNotSynced }

// Unwrap returns the cause and the errors of the laggards.
func (e *NotSyncedError) Unwrap() []error {
	var errs []error
	if e.Cause != nil {
		errs = append(errs, e.Cause)
	}
	for _, l := range e.Laggards {
		if l.Err != nil {
			errs = append(errs, l.Err)
		}
	}
	return errs
}

// CloseError says which handlers had not returned when Close gave up. If the cause is
// [engine.ErrInHandler], Close was called from a handler, which is among them, or from a
// function of the configuration.
type CloseError struct {
	Informer string
	// Handlers are the names of those handlers, in the order in which they were added;
	// there may be none if a function of the configuration has called Close.
	Handlers []string
	// Cause is why waiting ended.
	Cause error
}

func (e *CloseError) Error() string {
	if len(e.Handlers) == 0 {
		return fmt.Sprintf("close informer %s: %v", e.Informer, e.Cause)
	}
	return fmt.Sprintf("close informer %s: handlers are still running: %s: %v", e.Informer, strings.Join(e.Handlers, ", "), e.Cause)
}

// Is makes errors.Is(err, ErrStillRunning) true.
func (e *CloseError) Is(target error) bool { return target == ErrStillRunning }

// Unwrap returns why waiting ended.
func (e *CloseError) Unwrap() error { return e.Cause }
