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
	// ErrUndecodable: a stored value cannot be decoded. The error is an
	// [*UndecodableError].
	ErrUndecodable = errors.New("value cannot be decoded")
)

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
// anything that is wrong with the call itself.
func Retryable(err error) bool {
	return errors.Is(err, store.ErrConflict) || errors.Is(err, ErrFull) && !errors.Is(err, ErrUncertain) || errors.Is(err, ErrLocked)
}

// Uncertain reports whether err leaves unknown what has become of a write.
func Uncertain(err error) bool { return errors.Is(err, ErrUncertain) }
