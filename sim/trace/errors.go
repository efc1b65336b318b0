package trace

import (
	"errors"
	"fmt"
)

// What can be wrong with a line. A bad key is store.ErrInvalidKey.
var (
	// ErrLineTooLong: the line has more than [MaxLine] bytes.
	ErrLineTooLong = errors.New("line is too long")
	// ErrNotJSON: the line is not one JSON object in valid UTF-8.
	ErrNotJSON = errors.New("not a JSON object")
	// ErrMissingField: a field that every change needs is not there.
	ErrMissingField = errors.New("missing field")
	// ErrUnknownField: there is a field that changes do not have.
	ErrUnknownField = errors.New("unknown field")
	// ErrDuplicateField: a field is there twice.
	ErrDuplicateField = errors.New("duplicate field")
	// ErrBadValue: a field's value is of the wrong type, or out of range.
	ErrBadValue = errors.New("bad value")
	// ErrUnknownOp: the operation is neither put nor delete.
	ErrUnknownOp = errors.New("unknown op")
)

// What can be wrong with a file. Nothing can be read after these.
var (
	// ErrTruncated: the gzip stream ends before its end.
	ErrTruncated = errors.New("file is truncated")
	// ErrCorrupt: the gzip stream is damaged.
	ErrCorrupt = errors.New("file is corrupt")
	// ErrEmpty: there is not one line.
	ErrEmpty = errors.New("file is empty: a trace has at least one change")
)

// ErrNotTabular is returned by [State.WriteTSV] for a key or version with a tab
// or a newline, which would read back as something else.
var ErrNotTabular = errors.New("cannot be written as tab-separated values")

// Error says where a trace is wrong, and how.
type Error struct {
	// File is the name that was given for the trace.
	File string
	// Line is the line that is wrong, counted from 1; zero if it is the file.
	Line int
	// Good is how many lines before it were good.
	Good int
	// Err is what is wrong: one of this package's errors, store.ErrInvalidKey,
	// or what opening or reading the file met.
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

// Unwrap returns what is wrong.
func (e *Error) Unwrap() error { return e.Err }
