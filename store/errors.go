package store

import (
	"errors"
	"fmt"
)

// Errors about keys, revisions and objects. Match them with [errors.Is]; those
// with details also have a type for [errors.As].
var (
	// ErrNotFound: there is no object with that key. The error may be a
	// [*NotFoundError].
	ErrNotFound = errors.New("not found")
	// ErrExists: there is already an object with that key.
	ErrExists = errors.New("already exists")
	// ErrConflict: the object changed since it was read. A precondition that the
	// object does not meet any more is a conflict, too.
	ErrConflict = errors.New("conflict")
	// ErrPrecondition: the object is not the one that the caller meant. The error is
	// a [*PreconditionError].
	ErrPrecondition = errors.New("precondition failed")
	// ErrExpired: the revision is older than what is still kept. The error is
	// an [*ExpiredError].
	ErrExpired = errors.New("revision expired")
	// ErrFuture: the revision has not happened yet. The error is a
	// [*FutureError].
	ErrFuture = errors.New("revision is in the future")
	// ErrInvalidKey: the key cannot name an object. The error is a [*KeyError].
	ErrInvalidKey = errors.New("invalid key")
	// ErrInvalidContinue: the continue token was not made by this storage.
	ErrInvalidContinue = errors.New("invalid continue token")
	// ErrUnknownIndex: no index of that name was declared.
	ErrUnknownIndex = errors.New("unknown index")
	// ErrUnsupported: this storage cannot do that.
	ErrUnsupported = errors.New("unsupported")
	// ErrClosed: the storage, or the watch on it, was closed.
	ErrClosed = errors.New("closed")
)

// NotFoundError says which key was not found. It formats its text lazily, since
// every creation by Put begins with one.
type NotFoundError struct {
	Key string
	// Expected is the revision that the object was to have; zero for any.
	Expected Revision
}

func (e *NotFoundError) Error() string {
	if e.Expected == 0 {
		return fmt.Sprintf("%q: not found", e.Key)
	}
	return fmt.Sprintf("%q at revision %d: not found", e.Key, e.Expected)
}

// Is makes errors.Is(err, ErrNotFound) true.
func (e *NotFoundError) Is(target error) bool { return target == ErrNotFound }

// ExpiredError says that a revision is too old to start from.
type ExpiredError struct {
	// Requested is the revision that was asked for.
	Requested Revision
	// Oldest is the oldest revision that can still be asked for; zero if
	// unknown.
	Oldest Revision
}

func (e *ExpiredError) Error() string {
	oldest := "unknown"
	if e.Oldest > 0 {
		oldest = e.Oldest.String()
	}
	return fmt.Sprintf("too old revision: %d (oldest served is %s): list again and watch from the list's revision", e.Requested, oldest)
}

// Is makes errors.Is(err, ErrExpired) true.
func (e *ExpiredError) Is(target error) bool { return target == ErrExpired }

// FutureError says that a revision has not been reached.
type FutureError struct {
	Requested, Current Revision
}

func (e *FutureError) Error() string {
	return fmt.Sprintf("too large revision: %d, current: %d: retry, or ask for one that storage has returned", e.Requested, e.Current)
}

// Is makes errors.Is(err, ErrFuture) true.
func (e *FutureError) Is(target error) bool { return target == ErrFuture }

// KeyError says what is wrong with a key.
type KeyError struct {
	Key string
	// Reason is what is wrong and what would be right.
	Reason string
}

func (e *KeyError) Error() string { return fmt.Sprintf("invalid key %q: %s", e.Key, e.Reason) }

// Is makes errors.Is(err, ErrInvalidKey) true.
func (e *KeyError) Is(target error) bool { return target == ErrInvalidKey }

// PreconditionError says which precondition did not hold.
type PreconditionError struct {
	Key string
	// Field is "UID", "Revision" or "Absent".
	Field string
	// Want is what the caller demanded, Got what storage has. For Absent that is the
	// revision of the object that is there.
	Want, Got Revision
}

func (e *PreconditionError) Error() string {
	if e.Field == absent {
		return fmt.Sprintf("precondition failed on %q: there is an object at revision %d, wanted none", e.Key, e.Got)
	}
	return fmt.Sprintf("precondition failed on %q: %s is %d, wanted %d", e.Key, e.Field, e.Got, e.Want)
}

// Is makes errors.Is(err, ErrPrecondition) true, and errors.Is(err, ErrConflict):
// the object has changed, or is another one, since the caller read it. If there was
// to be none, errors.Is(err, ErrExists) is true as well.
func (e *PreconditionError) Is(target error) bool {
	return target == ErrPrecondition || target == ErrConflict || target == ErrExists && e.Field == absent
}

// absent is the Field of a precondition that there is no object.
const absent = "Absent"

// Errors of the user's functions that a cache or a queue calls for each item. What fails with
// one of them has changed nothing.
var (
	// ErrKeyFunc: the KeyFunc failed. The error is a [*KeyFuncError].
	ErrKeyFunc = errors.New("key function failed")
	// ErrTransform: the transform failed. The error is a [*TransformError].
	ErrTransform = errors.New("transform failed")
)

// KeyFuncError says that the key function failed for an item.
type KeyFuncError[T any] struct {
	// Item is the KeyFunc's argument.
	Item T
	// Err is what it returned, or a [*usercode.PanicError].
	Err error
}

func (e *KeyFuncError[T]) Error() string {
	return fmt.Sprintf("key function failed for %+v: %v", e.Item, e.Err)
}

// Unwrap returns the cause.
func (e *KeyFuncError[T]) Unwrap() error { return e.Err }

// Is makes errors.Is(err, ErrKeyFunc) true.
func (e *KeyFuncError[T]) Is(target error) bool { return target == ErrKeyFunc }

// TransformError says that an item could not be transformed.
type TransformError struct {
	Key string
	// Err is what the transform returned, or a [*usercode.PanicError].
	Err error
}

func (e *TransformError) Error() string {
	return fmt.Sprintf("transform of %q failed: %v", e.Key, e.Err)
}

// Unwrap returns the cause.
func (e *TransformError) Unwrap() error { return e.Err }

// Is makes errors.Is(err, ErrTransform) true.
func (e *TransformError) Is(target error) bool { return target == ErrTransform }
