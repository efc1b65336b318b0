package engine

import (
	"context"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/usercode"
)

// Change is the result of an [Engine.Modify]'s function: what to do with the object. The
// zero Change stores the zero value.
type Change[T any] struct {
	// Value replaces the object's value. An equal one writes nothing, unless it comes
	// with a TTL or makes the object permanent.
	Value T
	// TTL and Permanent are as in [UpdateOptions].
	TTL       time.Duration
	Permanent bool
	// Delete deletes the object; then the other fields mean nothing.
	Delete bool
}

// ModifyOptions qualifies a Modify. The zero value modifies whatever object has the
// key.
type ModifyOptions struct {
	// Preconditions must hold for the object that is modified, or for there being
	// none.
	Preconditions Preconditions
	// CreateIfMissing calls the function with nil if there is no object, to create
	// it. So does the precondition Absent.
	CreateIfMissing bool
}

// Modify is Update for a function that needs more than the value: it sees the whole
// object, with its revision and the times when it was written and when it expires,
// and may choose another TTL, or delete the object. Modify returns the object as
// stored, or its last state with the revision of the deletion.
//
// As with Update, change may be called several times, must not alter the object,
// which is shared, and a result is only written if that was the live object. It is called
// with nil only if there is no object and the options allow that; a Delete then fails
// with [ErrNotFound].
//
// Errors: as for Update.
func (e *Engine[T]) Modify(ctx context.Context, key string, change func(*Object[T]) (Change[T], error), opts ModifyOptions) (*Object[T], error) {
	if change == nil {
		return nil, &usercode.ConfigError{Field: "change", Problem: "is nil; give a function that returns the change"}
	}
	o, err := e.core.modify(ctx, key, func(_ context.Context, current *store.Object) (backend.Change, error) {
		c, err := change(typed[T](current))
		return backend.Change{Draft: draft(&c.Value), TTL: c.TTL, Permanent: c.Permanent, Delete: c.Delete}, err
	}, opts)
	return typed[T](o), err
}

func (e *core) modify(ctx context.Context, key string, change backend.ModifyFunc, opts ModifyOptions) (*store.Object, error) {
	if err := e.accepts(); err != nil {
		return nil, err
	}
	return e.beginWrite(ctx).acknowledge(e.storage.Modify(ctx, key, e.carryingChange(change), backend.ModifyOptions{
		Preconditions: opts.Preconditions, CreateIfMissing: opts.CreateIfMissing, Suggestion: e.suggestion(key),
	}))
}
