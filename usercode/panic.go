package usercode

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
)

// ErrPanic: a function supplied by the user panicked. The error is a
// [*PanicError].
var ErrPanic = errors.New("user code panicked")

// ErrGoexit stands for the value of a panic where a function supplied by the user
// ended its goroutine with runtime.Goexit, as t.FailNow does.
var ErrGoexit = errors.New("goroutine ended by runtime.Goexit")

// PanicError is a contained panic in a user's function.
type PanicError struct {
	// Func is the function that panicked, as in "Config.Labels".
	Func string
	// Key is the object that it was called for; "" if there is none.
	Key string
	// Revision is that of the event that it was called for; zero if there is
	// none.
	Revision uint64
	// Value is the panic's value.
	Value any
	// Stack is the goroutine's stack at the panic, as [debug.Stack] prints it.
	Stack []byte
}

// Error says which function panicked, for what, and with what, without the
// stack.
func (e *PanicError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s panicked", e.Func)
	if e.Key != "" {
		fmt.Fprintf(&b, " for %q", e.Key)
	}
	if e.Revision != 0 {
		fmt.Fprintf(&b, " at revision %d", e.Revision)
	}
	fmt.Fprintf(&b, ": %v", e.Value)
	return b.String()
}

// Is makes errors.Is(err, ErrPanic) true.
func (e *PanicError) Is(target error) bool { return target == ErrPanic }

// Unwrap returns Value if that is an error, otherwise nil.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Call calls f, which runs the user's function of that name on behalf of the
// object under key, and returns a panic in it as a [*PanicError]. It does not
// contain [runtime.Goexit].
func Call(name, key string, f func()) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{Func: name, Key: key, Value: value, Stack: debug.Stack()}
		}
	}()
	f()
	return nil
}
