package backend

import (
	"errors"
	"fmt"

	"github.com/watchmill/watchmill/store"
)

// What can go wrong beside what package store names.
var (
	// ErrPanic: a function of the user's panicked. The error is a [*PanicError].
	ErrPanic = errors.New("user code panicked")
	// ErrInvalidOption: an option has a value that means nothing. The error is
	// an [*OptionError].
	ErrInvalidOption = errors.New("invalid option")
)

// PanicError is a panic in a function of the user's, contained: nothing was
// written and everything goes on.
type PanicError struct {
	// Func is the function that panicked, as in "Schema.Labels".
	Func string
	// Key is the object that it was called for; "" if that was not known yet.
	Key string
	// Reason is what it panicked with, printed.
	Reason string
	// Cause is what it panicked with if that was an error, otherwise nil.
	Cause error
	// Stack is the goroutine's stack at the panic, as [debug.Stack] prints it.
	Stack []byte
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("%s panicked for %q: %s", e.Func, e.Key, e.Reason)
}

// Is makes errors.Is(err, ErrPanic) true.
func (e *PanicError) Is(target error) bool { return target == ErrPanic }

// Unwrap returns Cause.
func (e *PanicError) Unwrap() error { return e.Cause }

// OptionError says which option is wrong, and what would be right.
type OptionError struct {
	// Option is the field, as in "ListOptions.Limit".
	Option string
	// Problem is what is wrong with it and what to do.
	Problem string
}

func (e *OptionError) Error() string { return "invalid option " + e.Option + ": " + e.Problem }

// Is makes errors.Is(err, ErrInvalidOption) true.
func (e *OptionError) Is(target error) bool { return target == ErrInvalidOption }

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
