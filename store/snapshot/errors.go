package snapshot

import (
	"errors"
	"fmt"
)

// ErrInvalid: a snapshot is damaged or incomplete. The error is a [*ReadError].
var ErrInvalid = errors.New("invalid snapshot")

// ReadError says where a snapshot is wrong.
type ReadError struct {
	// Line is the line, from 1.
	Line int
	// Field is what is wrong in it; "" for the line itself.
	Field string
	// Problem is what is wrong.
	Problem string
	// Err is the cause, if there is one besides that.
	Err error
}

// Error says the line and the field.
func (e *ReadError) Error() string {
	text := fmt.Sprintf("invalid snapshot: line %d: ", e.Line)
	if e.Field != "" {
		text += e.Field + " "
	}
	text += e.Problem
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Is makes errors.Is(err, ErrInvalid) true.
func (e *ReadError) Is(target error) bool { return target == ErrInvalid }

// Unwrap returns the cause.
func (e *ReadError) Unwrap() error { return e.Err }
