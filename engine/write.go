package engine

import (
	"context"
	"time"

	"github.com/watchmill/watchmill/store/backend"
)

// Create stores value under its key and returns the revision of the write,
// which is also the new object's identity (its Created revision).
//
// Errors: [ErrExists], [ErrInvalidKey], [ErrEngineClosed], a panic of the
// config's functions, ctx's cause, or what the backend met.
func (e *Engine[T]) Create(ctx context.Context, value T) (Revision, error) {
	return e.CreateWithTTL(ctx, value, 0)
}

// CreateWithTTL is Create of an object that the backend deletes by itself after
// ttl; zero means never.
func (e *Engine[T]) CreateWithTTL(ctx context.Context, value T, ttl time.Duration) (Revision, error) {
	if err := e.open(); err != nil {
		return 0, err
	}
	o, err := e.storage.Create(ctx, value, backend.CreateOptions{TTL: ttl})
	if err != nil {
		return 0, err
	}
	return o.Revision, nil
}

// UpdateOptions qualifies an Update. The zero value updates whatever object has
// the key.
type UpdateOptions struct {
	// Preconditions must hold for the object that is replaced.
	Preconditions Preconditions
	// CreateIfMissing calls the function with the zero value and creates the
	// object if there is none.
	CreateIfMissing bool
	// TTL is how long the object lives from this update on; zero makes it
	// permanent.
	TTL time.Duration
}

// Update replaces the object under key by what change makes of its value, and
// returns it as stored. It retries while others write the object in between, so
// change may be called several times. It must not alter its argument, which is
// shared: return a changed copy. A change to an equal value writes nothing.
//
// If reading the backend costs I/O, the first try is made on the cached object;
// what is written is always the outcome of a call on the live one.
//
// Errors: [ErrNotFound], [ErrPrecondition], what change returned,
// [ErrInvalidKey] if the new value has another key, [backend.ErrInvalidOption]
// if change is nil or TTL negative, [ErrEngineClosed], ctx's cause, or what the
// backend met.
func (e *Engine[T]) Update(ctx context.Context, key string, change func(T) (T, error), opts UpdateOptions) (*Object[T], error) {
	if err := e.open(); err != nil {
		return nil, err
	}
	if change == nil {
		return nil, &backend.OptionError{Option: "change", Problem: "the function is nil; give one that returns the new value"}
	}
	update := func(_ context.Context, current *Object[T]) (T, error) {
		var value T
		if current != nil {
			value = current.Value
		}
		return change(value)
	}
	return e.storage.GuaranteedUpdate(ctx, key, update, backend.UpdateOptions[T]{
		Preconditions: opts.Preconditions, CreateIfMissing: opts.CreateIfMissing, TTL: opts.TTL,
		Suggestion: e.cachedObject(key),
	})
}

// Put stores value under its key, whether there was an object or not, and
// returns the revision that has it: of the write, or of the object if it was
// equal already.
//
// Errors: as for Create and Update.
func (e *Engine[T]) Put(ctx context.Context, value T) (Revision, error) {
	var key string
	if err := backend.Contain("Key", "", func() { key = e.cfg.Key(value) }); err != nil {
		return 0, err
	}
	o, err := e.Update(ctx, key, func(T) (T, error) { return value, nil }, UpdateOptions{CreateIfMissing: true})
	if err != nil {
		return 0, err
	}
	return o.Revision, nil
}

// DeleteOptions qualifies a Delete. The zero value deletes whatever object has
// the key.
type DeleteOptions[T any] struct {
	// Preconditions must hold for the object that is deleted.
	Preconditions Preconditions
	// Validate has the last word on the state that is deleted: an error keeps
	// it. It may be called several times.
	Validate func(current *Object[T]) error
}

// Delete deletes the object under key and returns its last state, with the
// revision of the deletion.
//
// Errors: [ErrNotFound], [ErrPrecondition], what Validate returned,
// [ErrInvalidKey], [ErrEngineClosed], ctx's cause, or what the backend met.
func (e *Engine[T]) Delete(ctx context.Context, key string, opts DeleteOptions[T]) (*Object[T], error) {
	if err := e.open(); err != nil {
		return nil, err
	}
	var validate backend.ValidateFunc[T]
	if opts.Validate != nil {
		validate = func(_ context.Context, o *Object[T]) error { return opts.Validate(o) }
	}
	return e.storage.Delete(ctx, key, backend.DeleteOptions[T]{
		Preconditions: opts.Preconditions, Validate: validate, Suggestion: e.cachedObject(key),
	})
}

// emits reports whether there may be events that are not state, and every
// revision is an event.
func (e *Engine[T]) emits() bool {
	_, emitter := e.storage.Backend().(backend.Emitter[T])
	return emitter && e.storage.Backend().Traits().Contiguous
}

// Emit sends value to the watches as an event that is not state: it has a
// revision, passes through the window and can be resumed after, but no Get or
// List shows it.
//
// If the cache has to list anew, values that it has not read yet are lost, for no
// list shows them: [Stats].Unseen bounds how many, and the next value that is
// emitted carries the mark [AfterGap]. A [Topic] sees to it that this does not
// happen, unless a part of the engine fails ([Stats].Failures).
//
// Errors: [ErrUnsupported] if the backend cannot, [ErrInvalidKey],
// [ErrEngineClosed], a panic of the config's functions, ctx's cause.
func (e *Engine[T]) Emit(ctx context.Context, value T) (Revision, error) {
	if err := e.open(); err != nil {
		return 0, err
	}
	emitter, ok := e.storage.Backend().(backend.Emitter[T])
	if !ok {
		return 0, ErrUnsupported
	}
	var key string
	if err := backend.Contain("Key", "", func() { key = e.cfg.Key(value) }); err != nil {
		return 0, err
	}
	o, err := emitter.Emit(ctx, key, value)
	if err != nil {
		return 0, err
	}
	return o.Revision, nil
}

// cachedObject returns what the cache has under key as a suggestion, nil if
// nothing. Where reading the live object costs no I/O there is nothing to save.
func (e *Engine[T]) cachedObject(key string) *Object[T] {
	if !e.storage.Backend().Traits().Blocks {
		return nil
	}
	return e.published.Load().State.Get(key)
}
