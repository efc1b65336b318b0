package backend

import (
	"fmt"

	"github.com/watchmill/watchmill/store"
)

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
