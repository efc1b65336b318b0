package actors

import (
	"errors"
	"fmt"
	"strings"
)

// What can go wrong with a system and its actors. Match them with [errors.Is].
var (
	// ErrConfig: a configuration cannot work. The error is a [*ConfigError].
	ErrConfig = errors.New("invalid configuration")
	// ErrStillRunning: a Close gave up waiting. From [System.Close] the error is
	// a [*StillRunningError].
	ErrStillRunning = errors.New("still running")
	// ErrStopping: the parent is stopping, restarting or gone, and so takes no
	// children.
	ErrStopping = errors.New("parent is stopping")
	// ErrSpawned: the WakeBox belongs to an actor already; it cannot be used
	// twice, not even after that actor has stopped.
	ErrSpawned = errors.New("wake box is in use")
	// ErrGoexit is the reason of a failure when user code ended its goroutine
	// with runtime.Goexit, as t.FailNow does.
	ErrGoexit = errors.New("goroutine ended by runtime.Goexit")
)

// ConfigError says which field of a configuration is wrong.
type ConfigError struct {
	// Field is the field's name, such as "SystemConfig.Workers".
	Field string
	// Problem is what is wrong and what would be right.
	Problem string
}

func (e *ConfigError) Error() string { return e.Field + ": " + e.Problem }

// Is makes errors.Is(err, ErrConfig) true.
func (e *ConfigError) Is(target error) bool { return target == ErrConfig }

// StillRunningError says which actors had not ended when [System.Close], or
// whoever asked [Ref.StillRunning], gave up.
type StillRunningError struct {
	// Busy are the names, sorted, of actors with a turn in progress: those that
	// are to blame, if they are blocked.
	Busy []string
	// Waiting are the names, sorted, of the others; they wait for their children.
	Waiting []string
	// Wakers is the number of wake actors left, children of those above.
	Wakers int
	// Cause is why waiting ended: the cause of the context.
	Cause error
}

func (e *StillRunningError) Error() string {
	var left []string
	if len(e.Busy) > 0 {
		left = append(left, "in a turn: "+strings.Join(e.Busy, ", "))
	}
	if len(e.Waiting) > 0 {
		left = append(left, "waiting: "+strings.Join(e.Waiting, ", "))
	}
	if e.Wakers > 0 {
		left = append(left, fmt.Sprintf("%d wake actors", e.Wakers))
	}
	return fmt.Sprintf("actors still running (%s): %v", strings.Join(left, "; "), e.Cause)
}

// Is makes errors.Is(err, ErrStillRunning) true.
func (e *StillRunningError) Is(target error) bool { return target == ErrStillRunning }

// Unwrap returns the cause.
func (e *StillRunningError) Unwrap() error { return e.Cause }
