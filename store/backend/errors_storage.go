package backend

import (
	"errors"
	"fmt"

	"github.com/watchmill/watchmill/store"
)

// What can go wrong with storage outside the process. They mean the same for all
// backends.
var (
	// ErrFull: there is no space to write to. Nothing was written; reads and
	// watches go on, and writes succeed again when there is space.
	ErrFull = errors.New("no space left")
	// ErrFailed: storage failed for good. Reads and watches serve what was durable
	// before; writes fail until it is opened again.
	ErrFailed = errors.New("writing failed")
	// ErrUncertain: whether the write was done is not known, and may not be so for
	// good. Without this, no error of a write leaves it done.
	ErrUncertain = errors.New("outcome unknown")
	// ErrLocked: the storage is in use elsewhere.
	ErrLocked = errors.New("file is locked")
	// ErrReadOnly: the storage was opened for reading.
	ErrReadOnly = errors.New("opened read-only")
	// ErrCorrupt: what is stored is damaged.
	ErrCorrupt = errors.New("file is damaged")
	// ErrTooLarge: an object is larger than storage takes.
	ErrTooLarge = errors.New("too large")
	// ErrUnavailable: storage cannot be reached, or cannot serve now. Nothing was
	// written.
	ErrUnavailable = errors.New("storage is unavailable")
	// ErrDenied: storage does not let this user do that.
	ErrDenied = errors.New("permission denied")
	// ErrUndecodable: a stored value cannot be decoded. The error is an
	// [*UndecodableError].
	ErrUndecodable = errors.New("value cannot be decoded")
)

// UncertainError says of which write the outcome is unknown.
type UncertainError struct {
	// Verb is what was called: "put", "remove" or "emit".
	Verb string
	// Key is the object's.
	Key string
	// Cause is why the answer did not come.
	Cause error
}

func (e *UncertainError) Error() string {
	return fmt.Sprintf("whether the %s of %q was done is unknown: read it again before you decide what to do: %v", e.Verb, e.Key, e.Cause)
}

// Is makes errors.Is(err, [ErrUncertain]) true.
func (e *UncertainError) Is(target error) bool { return target == ErrUncertain }

// Unwrap returns Cause.
func (e *UncertainError) Unwrap() error { return e.Cause }

// TooLargeError says how large an object is, encoded, and how large it may be.
type TooLargeError struct{ Size, Limit int }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("a record of %d bytes is larger than the limit of %d: store less in one object", e.Size, e.Limit)
}

// Is makes errors.Is(err, [ErrTooLarge]) true.
func (e *TooLargeError) Is(target error) bool { return target == ErrTooLarge }

// UndecodableError says which stored value cannot be decoded: its type has
// changed, its key is lost, or it was damaged and given up.
type UndecodableError struct {
	// Type is the name of the objects' type in storage.
	Type string
	// Key and Revision are the object's.
	Key      string
	Revision store.Revision
	// Tag is the codec's.
	Tag uint8
	// Cause is what decoding met.
	Cause error
}

func (e *UndecodableError) Error() string {
	return fmt.Sprintf("%s %q at revision %d cannot be decoded (codec tag %d): give the codec and the keys that wrote it, or delete it by its revision: %v", e.Type, e.Key, e.Revision, e.Tag, e.Cause)
}

// Is makes errors.Is(err, [ErrUndecodable]) true.
func (e *UndecodableError) Is(target error) bool { return target == ErrUndecodable }

// Unwrap returns Cause.
func (e *UndecodableError) Unwrap() error { return e.Cause }

// Retryable reports whether the same call may succeed if it is made again,
// without anything being done about storage first: not after [ErrFailed], or
// anything that is wrong with the call itself, such as a precondition that does not
// hold, and not while it is unknown whether the first call was carried out.
func Retryable(err error) bool {
	if errors.Is(err, store.ErrPrecondition) {
		return false
	}
	for _, passing := range []error{store.ErrConflict, ErrFull, ErrLocked, ErrUnavailable} {
		if errors.Is(err, passing) {
			return !Uncertain(err)
		}
	}
	return false
}

// Uncertain reports whether err leaves unknown what has become of a write.
func Uncertain(err error) bool { return errors.Is(err, ErrUncertain) }
