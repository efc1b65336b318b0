package cache

import (
	"errors"
	"fmt"
)

// Errors about the configuration and the indexes of a cache. A write that fails with one of
// them has changed nothing.
var (
	// ErrNoKeyFunc: the configuration has no KeyFunc.
	ErrNoKeyFunc = errors.New("no key function")
	// ErrNoClock: the configuration of an [ExpirationCache] has no Now.
	ErrNoClock = errors.New("no clock")
	// ErrIndexFunc: an IndexFunc failed. The error is an [*IndexFuncError].
	ErrIndexFunc = errors.New("index function failed")
	// ErrNoIndexFunc: an index is declared without a function. It is the Err of an
	// [*IndexFuncError].
	ErrNoIndexFunc = errors.New("the IndexFunc is nil: give it one that returns an item's values")
	// ErrIndexConflict: there is already an index of that name.
	ErrIndexConflict = errors.New("index already exists")
)

// IndexFuncError says that an item could not be indexed.
type IndexFuncError struct {
	// Index is the name of the index.
	Index string
	// Key is that of the item, or "" for an item that is not stored.
	Key string
	// Err is what the IndexFunc returned, a [*usercode.PanicError], or
	// [ErrNoIndexFunc].
	Err error
}

func (e *IndexFuncError) Error() string {
	return fmt.Sprintf("index %q failed for %q: %v", e.Index, e.Key, e.Err)
}

// Unwrap returns the cause.
func (e *IndexFuncError) Unwrap() error { return e.Err }

// Is makes errors.Is(err, ErrIndexFunc) true.
func (e *IndexFuncError) Is(target error) bool { return target == ErrIndexFunc }

// TransactionError says which parts of a transaction were not applied. The
// others were.
type TransactionError struct {
	// Total is the number of transactions that were given.
	Total int
	// Applied are the positions of those that took effect, ascending.
	Applied []int
	// Errors are the reasons of the others, in their order.
	Errors []error
}

func (e *TransactionError) Error() string {
	return fmt.Sprintf("%d of %d transactions failed: %v", len(e.Errors), e.Total, errors.Join(e.Errors...))
}

// Unwrap returns the reasons, so that [errors.Is] and [errors.As] find them.
func (e *TransactionError) Unwrap() []error { return e.Errors }
