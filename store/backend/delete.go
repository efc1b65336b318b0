package backend

import (
	"context"

	"github.com/watchmill/watchmill/store"
)

// ValidateFunc decides whether an object may be deleted: an error keeps it. It
// may be called several times for one deletion, and must not change current,
// which is shared.
type ValidateFunc[T any] func(ctx context.Context, current *store.Object[T]) error

// DeleteOptions qualifies a Delete. The zero value deletes whatever object has
// the key.
type DeleteOptions[T any] struct {
	// Preconditions must hold for the object that is deleted.
	Preconditions Preconditions
	// Validate has the last word, on the very state that is deleted; nil allows
	// it.
	Validate ValidateFunc[T]
	// Suggestion is what the object probably is; see
	// [UpdateOptions.Suggestion].
	Suggestion *store.Object[T]
}

// Delete deletes the object under key and returns its last state with the
// revision of the deletion. It tries again, from live state, as long as others
// write the object in between.
//
// Errors: [store.ErrNotFound], [store.ErrPrecondition], what Validate returned,
// [store.ErrInvalidKey], [ErrPanic], ctx's error, or whatever reaching storage
// met. None of them is final for being true of a stale suggestion.
func (s *Storage[T]) Delete(ctx context.Context, key string, opts DeleteOptions[T]) (*store.Object[T], error) {
	if err := store.ValidateKey(key); err != nil {
		return nil, err
	}
	return s.settle(ctx, key, opts.Suggestion, false, func(now belief[T]) (*store.Object[T], error) {
		return s.tryDelete(ctx, key, &opts, now.object)
	})
}

// tryDelete makes one attempt on what the object is believed to be.
func (s *Storage[T]) tryDelete(ctx context.Context, key string, opts *DeleteOptions[T], current *store.Object[T]) (*store.Object[T], error) {
	if err := checkPreconditions(opts.Preconditions, key, current); err != nil {
		return nil, err
	}
	if err := allowed(ctx, key, opts.Validate, current); err != nil {
		return nil, err
	}
	gone, err := s.backend.Remove(ctx, key, current.Revision)
	return gone, lostRace(err)
}

func allowed[T any](ctx context.Context, key string, validate ValidateFunc[T], current *store.Object[T]) (verdict error) {
	if validate == nil {
		return nil
	}
	if err := Contain("DeleteOptions.Validate", key, func() { verdict = validate(ctx, current) }); err != nil {
		return err
	}
	return verdict
}
