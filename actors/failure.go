package actors

import (
	"fmt"
	"runtime/debug"
)

// Directive is what a supervisor wants done with a child that failed.
type Directive uint8

const (
	// Stop ends the child. It is the default. What it still had in its queue is
	// dropped.
	Stop Directive = iota
	// Restart replaces the child's behavior with a new one. The child keeps its
	// ID, its Ref and its queue; its children are stopped. Wake actors cannot be
	// restarted: for them it means Stop.
	//
	// A restart happens at once and as often as the supervisor says: a limit or
	// a delay is the supervisor's business.
	Restart
	// Resume lets the child go on as if nothing had happened, except that the
	// message, or wake, during which it failed is lost. If it failed to make its
	// behavior there is nothing to go on with, and Resume means Stop.
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

// Failure is one panic of user code that was contained.
type Failure struct {
	// Actor is the name of the actor that failed, or "timer" for the function of
	// a timer.
	Actor string
	// ID is the actor's; zero for a timer.
	ID ID
	// Reason is the value of the panic, or [ErrGoexit].
	Reason any
	// Stack is the stack of the panicking goroutine, as debug.Stack prints it.
	Stack []byte
	// Directive is what was done about it.
	Directive Directive

	// What may be done about it beside Stop.
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

// contain must be deferred around user code. It hands a panic in it, or a
// Goexit (recognised by done being false), to failed. A Goexit goes on
// afterwards: nothing can hold it up.
func contain(done *bool, failed func(reason any, stack []byte)) {
	switch reason := recover(); {
	case reason != nil:
		failed(reason, debug.Stack())
	case !*done:
		failed(ErrGoexit, debug.Stack())
	}
}
