package store

import (
	"errors"
	"fmt"

	"github.com/watchmill/watchmill/usercode"
)

// Errors of the user's functions in a [Store], an [Indexer] or a
// [ThreadSafeStore]. A write that fails with one of them has changed nothing.
var (
	// ErrNoKeyFunc: the configuration has no KeyFunc.
	ErrNoKeyFunc = errors.New("no key function")
	// ErrKeyFunc: the KeyFunc failed. The error is a [*KeyFuncError].
	ErrKeyFunc = errors.New("key function failed")
	// ErrTransform: the transform failed. The error is a [*TransformError].
	ErrTransform = errors.New("transform failed")
	// ErrIndexFunc: an IndexFunc failed. The error is an [*IndexFuncError].
	ErrIndexFunc = errors.New("index function failed")
	// ErrIndexConflict: there is already an index of that name.
	ErrIndexConflict = errors.New("index already exists")
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

// IndexFuncError says that an item could not be indexed.
type IndexFuncError struct {
	// Index is the name of the index.
	Index string
	// Key is that of the item, or "" for an item that is not stored.
	Key string
	// Err is what the IndexFunc returned, or a [*usercode.PanicError].
	Err error
}

func (e *IndexFuncError) Error() string {
	return fmt.Sprintf("index %q failed for %q: %v", e.Index, e.Key, e.Err)
}

// Unwrap returns the cause.
func (e *IndexFuncError) Unwrap() error { return e.Err }

// Is makes errors.Is(err, ErrIndexFunc) true.
func (e *IndexFuncError) Is(target error) bool { return target == ErrIndexFunc }

// contained calls the user's function of that name and returns a panic in it as a
// [*usercode.PanicError].
func contained[In, Out any](name string, fn func(In) (Out, error), in In) (out Out, err error) {
	if panicked := usercode.Call(name, "", func() { out, err = fn(in) }); panicked != nil {
		return out, panicked
	}
	return out, err
}

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
