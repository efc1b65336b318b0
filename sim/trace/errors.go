package trace

import (
	"errors"
	"fmt"
)

// Errors of a line. The error of a bad key is store.ErrInvalidKey.
var (
	// ErrLineTooLong: the line has more than [MaxLine] bytes.
	ErrLineTooLong = errors.New("line is too long")
	// ErrNotJSON: the line is not one JSON object in valid UTF-8.
	ErrNotJSON = errors.New("not a JSON object")
	// ErrMissingField: a required field is missing.
	ErrMissingField = errors.New("missing field")
	// ErrUnknownField: a field is none of t, op, key and version.
	ErrUnknownField = errors.New("unknown field")
	// ErrDuplicateField: a field occurs twice.
	ErrDuplicateField = errors.New("duplicate field")
	// ErrBadValue: a field's value is of the wrong type, or out of range.
	ErrBadValue = errors.New("bad value")
	// ErrUnknownOp: the operation is neither put nor delete.
	ErrUnknownOp = errors.New("unknown op")
)

// Errors of a file. They end the iteration.
var (
	// ErrTruncated: the gzip stream is cut short.
	ErrTruncated = errors.New("file is truncated")
	// ErrCorrupt: the gzip stream is damaged.
	ErrCorrupt = errors.New("file is corrupt")
	// ErrEmpty: there is no line.
	ErrEmpty = errors.New("file is empty: a trace has at least one change")
)

// ErrNotTabular is returned by [State.WriteTSV] for a key or version with a tab or a
// newline, which the format cannot represent.
var ErrNotTabular = errors.New("cannot be written as tab-separated values")

// Error is an error in a trace, with its position.
type Error struct {
	// File is the name of the trace.
	File string
	// Line is the number of the bad line, counted from 1; zero if the error is about
	// the file.
	Line int
	// Good is the number of good lines before it.
	Good int
	// Err is the cause: one of this package's errors, store.ErrInvalidKey, or the
	// error of opening or reading the file.
	Err error
}

func (e *Error) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err)
	}
	if e.Good > 0 {
		return fmt.Sprintf("%s: %v (good lines before that: %d)", e.File, e.Err, e.Good)
	}
	return fmt.Sprintf("%s: %v", e.File, e.Err)
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }
