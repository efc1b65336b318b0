package backend

import (
	"errors"
	"fmt"

	"github.com/watchmill/watchmill/store"
)

// ConflictError says that the object under a key is not the one that a write expected.
type ConflictError struct {
	Key string
	// Expected is the revision that the write expected; zero means no object.
	Expected store.Revision
	// Current is the present object; nil if there is none.
	Current *store.Object
}

// CheckExpected returns a [*ConflictError] unless current, the object under key or nil,
// has the expected revision; zero means no object.
func CheckExpected(key string, current *store.Object, expected store.Revision) error {
	if current == nil && expected == 0 || current != nil && current.Revision == expected {
		return nil
	}
	return &ConflictError{Key: key, Expected: expected, Current: current}
}

func (e *ConflictError) Error() string {
	switch {
	case e.Current == nil:
		return (&store.NotFoundError{Key: e.Key, Expected: e.Expected}).Error()
	case e.Expected == 0:
		return fmt.Sprintf("%q exists since revision %d: %v", e.Key, e.Current.Created, store.ErrExists)
	}
	return fmt.Sprintf("%q is at revision %d, not %d: %v", e.Key, e.Current.Revision, e.Expected, store.ErrConflict)
}

// Unwrap returns a [*store.NotFoundError] if there is no object,
// [store.ErrExists] if the write expected none, and otherwise [store.ErrConflict].
func (e *ConflictError) Unwrap() error {
	switch {
	case e.Current == nil:
		return &store.NotFoundError{Key: e.Key, Expected: e.Expected}
	case e.Expected == 0:
		return store.ErrExists
	}
	return store.ErrConflict
}

// KeyMismatchError says that an update returned a value with another key.
type KeyMismatchError struct {
	// Key is that of the update, Got that of the new value.
	Key, Got string
}

func (e *KeyMismatchError) Error() string {
	return fmt.Sprintf("update of %q returned a value with the key %q: an update cannot rename; delete and create instead", e.Key, e.Got)
}

// Is makes errors.Is(err, [store.ErrInvalidKey]) true.
func (e *KeyMismatchError) Is(target error) bool { return target == store.ErrInvalidKey }

// TokenError says why a continue token was refused.
type TokenError struct {
	// Reason is what is wrong with the token.
	Reason string
	// Cause is the underlying error, if there is one.
	Cause error
}

func (e *TokenError) Error() string {
	return "invalid continue token: " + e.Reason + ": list again without a token"
}

// Is makes errors.Is(err, [store.ErrInvalidContinue]) true.
func (e *TokenError) Is(target error) bool { return target == store.ErrInvalidContinue }

// Unwrap returns Cause.
func (e *TokenError) Unwrap() error { return e.Cause }

// ExpiredContinueError says that the pages of a list can no longer be read at
// the revision of its first page. It wraps the [*store.ExpiredError], so
// errors.Is(err, [store.ErrExpired]) is true.
type ExpiredContinueError struct {
	Expired *store.ExpiredError
	// Continue continues after the last page, but in the newest state, for callers that
	// accept pages of different revisions; "" if storage does not offer that.
	Continue string
}

func (e *ExpiredContinueError) Error() string {
	if e.Continue == "" {
		return e.Expired.Error()
	}
	return e.Expired.Error() + " (or continue inconsistently with the token in this error)"
}

// Unwrap returns Expired.
func (e *ExpiredContinueError) Unwrap() error { return e.Expired }

// Errors of storage outside of the process. They mean the same for all backends.
var (
	// ErrFull: there is no space. Nothing was written; reads and watches work, and
	// writes succeed again when there is space.
	ErrFull = errors.New("no space left")
	// ErrFailed: storage failed permanently. Reads and watches return what was durable
	// before; writes fail until it is opened again.
	ErrFailed = errors.New("writing failed")
	// ErrUncertain: it is unknown whether the write was done or will be. A write that
	// fails with any other error was not done.
	ErrUncertain = errors.New("outcome unknown")
	// ErrLocked: another process uses the storage.
	ErrLocked = errors.New("file is locked")
	// ErrReadOnly: the storage was opened for reading.
	ErrReadOnly = errors.New("opened read-only")
	// ErrCorrupt: the stored data is damaged.
	ErrCorrupt = errors.New("file is damaged")
	// ErrTooLarge: an object is larger than storage allows.
	ErrTooLarge = errors.New("too large")
	// ErrUnavailable: storage cannot be reached, or cannot serve now. Nothing was
	// written.
	ErrUnavailable = errors.New("storage is unavailable")
	// ErrDenied: the user may not do that.
	ErrDenied = errors.New("permission denied")
	// ErrUndecodable: a stored value cannot be decoded. The error is an
	// [*UndecodableError].
	ErrUndecodable = errors.New("value cannot be decoded")
)

// UncertainError says which write has an unknown outcome.
type UncertainError struct {
	// Verb is the operation, such as "put", "remove" or "emit".
	Verb string
	// Key is the object's. If a server was to complete the name, it is the part that was given.
	Key string
	// Cause is why there was no answer.
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

// UndecodableError says which stored value cannot be decoded: its type has changed, its
// encryption key is missing, or it is damaged beyond repair.
type UndecodableError struct {
	// Type is the name of the objects' type in storage.
	Type string
	// Key and Revision are the object's.
	Key      string
	Revision store.Revision
	// Tag is the codec's.
	Tag uint8
	// Cause is the error of decoding.
	Cause error
}

func (e *UndecodableError) Error() string {
	return fmt.Sprintf("%s %q at revision %d cannot be decoded (codec tag %d): give the codec and the keys that wrote it, or delete it by its revision: %v", e.Type, e.Key, e.Revision, e.Tag, e.Cause)
}

// Is makes errors.Is(err, [ErrUndecodable]) true.
func (e *UndecodableError) Is(target error) bool { return target == ErrUndecodable }

// Unwrap returns Cause.
func (e *UndecodableError) Unwrap() error { return e.Cause }

// Retryable reports whether the same call may succeed later without any other action: after
// [ErrFull], [ErrLocked] and [ErrUnavailable], and after a [store.ErrConflict] of a call
// that reads the object anew, as the calls of [Storage] do. It may not after [ErrFailed],
// after errors of the call itself, such as a precondition that does not hold, and while the
// outcome of the first call is unknown.
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

// Uncertain reports whether the outcome of the write that failed with err is unknown.
func Uncertain(err error) bool { return errors.Is(err, ErrUncertain) }
