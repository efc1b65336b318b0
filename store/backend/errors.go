package backend

import (
	"fmt"

	"github.com/watchmill/watchmill/store"
)

// ConflictError says that the object under a key is not the one that a write was
// to replace, and what it is.
type ConflictError struct {
	Key string
	// Expected is the revision of the object that was to be replaced; zero means
	// that there was to be none.
	Expected store.Revision
	// Current is the object as it is; nil if there is none.
	Current *store.Object
}

// CheckExpected returns a [*ConflictError] unless current, the object under key or
// nil, is at the revision expected, zero standing for none.
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
		return fmt.Sprintf("%q is there since revision %d: %v", e.Key, e.Current.Created, store.ErrExists)
	}
	return fmt.Sprintf("%q is at revision %d, not %d: %v", e.Key, e.Current.Revision, e.Expected, store.ErrConflict)
}

// Unwrap returns a [*store.NotFoundError] if there is no object,
// [store.ErrExists] if there was to be none, and otherwise [store.ErrConflict].
func (e *ConflictError) Unwrap() error {
	switch {
	case e.Current == nil:
		return &store.NotFoundError{Key: e.Key, Expected: e.Expected}
	case e.Expected == 0:
		return store.ErrExists
	}
	return store.ErrConflict
}

// KeyMismatchError says that an update turned an object into one that belongs
// under another key.
type KeyMismatchError struct {
	// Key is the object that was to be updated, Got the new value's key.
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
	// Cause is the error beneath, if there is one.
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
	// Continue goes on behind the last page, but at the newest state: a caller
	// that can live with pages of different revisions passes it instead.
	Continue string
}

func (e *ExpiredContinueError) Error() string {
	return e.Expired.Error() + " (or continue inconsistently with the token in this error)"
}

// Unwrap returns Expired.
func (e *ExpiredContinueError) Unwrap() error { return e.Expired }
