package actors

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/watchmill/watchmill/usercode"
)

// The errors of a system and its actors. Match them with [errors.Is].
var (
	// ErrStillRunning: a Close gave up waiting. From [System.Close] the error is
	// a [*StillRunningError].
	ErrStillRunning = errors.New("still running")
	// ErrStopping: the parent is stopping, restarting or has stopped, and so
	// takes no children.
	ErrStopping = errors.New("parent is stopping")
	// ErrNoChildren: the parent is a wake actor.
	ErrNoChildren = errors.New("a wake actor has no children")
	// ErrSpawned: the WakeBox belongs to an actor already; it cannot be used
	// twice, not even after that actor has stopped.
	ErrSpawned = errors.New("wake box is in use")
	// ErrWorkerHeld is the reason of a failure when a turn has held a worker of
	// the system's pool, or a sender in [Ref.Ask], for more than a second. Other actors, or
	// senders, wait for that. An actor that may block belongs on [System.Blocking].
	ErrWorkerHeld = errors.New("turn has held a worker of the pool for more than 1s")

	errNoBehavior = errors.New("actors: the newBehavior given to Spawn returned nil")
)

// Directive is a supervisor's decision about a child that failed.
type Directive uint8

const (
	// Stop ends the child. It is the default. The messages in its queue are
	// dropped.
	Stop Directive = iota
	// Restart replaces the child's behavior with a new one. The child keeps its
	// ID, its Ref and its queue; its children are stopped. Wake actors cannot be
	// restarted: for them it means Stop.
	//
	// A restart happens at once and as often as the supervisor says: a limit or
	// a delay is up to the supervisor.
	Restart
	// Resume lets the child go on as if nothing had happened, except that the
	// message, or wake, during which it failed is lost. If it failed to make its
	// behavior it cannot go on, and Resume means Stop.
	Resume
)

// String returns the directive's name.
func (d Directive) String() string {
	switch d {
	case Stop:
		return "Stop"
	case Restart:
		return "Restart"
	case Resume:
		return "Resume"
	}
	return fmt.Sprintf("Directive(%d)", uint8(d))
}

// Failure is one panic of user code that was contained, or one turn that holds a
// worker of the pool.
type Failure struct {
	// Actor is the name of the actor that failed, with the name that a [Waker] has by
	// a method Name in parentheses; or "timer" for the function of a timer, "logger" for
	// the handler of the system's Logger.
	Actor string
	// ID is the actor's; zero for a timer and the logger.
	ID ID
	// Reason is the value of the panic, [usercode.ErrGoexit] or [ErrWorkerHeld].
	Reason any
	// Stack is the stack of the panicking goroutine, as debug.Stack prints it; nil
	// for ErrWorkerHeld.
	Stack []byte
	// Directive is the decision about it.
	Directive Directive

	// The directives that can be carried out, besides Stop.
	restartable, resumable bool
}

// permits reports whether the directive can be carried out on the actor that
// failed.
func (f *Failure) permits(d Directive) bool {
	return d == Restart && f.restartable || d == Resume && f.resumable
}

// Error describes the failure without its stack.
func (f *Failure) Error() string { return fmt.Sprintf("actor %s failed: %v", f.Actor, f.Reason) }

// Unwrap returns the reason if that is an error.
func (f *Failure) Unwrap() error {
	err, _ := f.Reason.(error)
	return err
}

// contain must be deferred around user code. It passes a panic in it, or a
// Goexit (recognised by done being false), to failed. A Goexit cannot be
// recovered: it goes on afterwards.
func contain(done *bool, failed func(reason any, stack []byte)) {
	switch reason := recover(); {
	case reason != nil:
		failed(reason, debug.Stack())
	case !*done:
		failed(usercode.ErrGoexit, debug.Stack())
	}
}
