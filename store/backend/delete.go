package backend

import (
	"context"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// ValidateFunc returns an error if an object must not be deleted. It may be called
// several times for one deletion, and must not change current, which is shared.
type ValidateFunc func(ctx context.Context, current *store.Object) error

// DeleteOptions qualifies a Delete. The zero value deletes whatever object has
// the key.
type DeleteOptions struct {
	// Preconditions must hold for the object that is deleted.
	Preconditions Preconditions
	// Validate decides on the exact state that is deleted; nil allows it.
	Validate ValidateFunc
	// Suggestion is the assumed object; see [UpdateOptions.Suggestion].
	Suggestion *store.Object
}

// Delete deletes the object under key and returns its last state with the
// revision of the deletion. It tries again with the live object while concurrent writes
// change it.
//
// Errors: [store.ErrNotFound], [store.ErrPrecondition], what Validate returned,
// [store.ErrInvalidKey], [usercode.ErrPanic], ctx's cause, or an error of reaching
// storage. Those that depend on the object are of the live one, not of a stale
// suggestion.
func (s *Storage) Delete(ctx context.Context, key string, opts DeleteOptions) (*store.Object, error) {
	if err := store.ValidateKey(key); err != nil {
		return nil, err
	}
	if opts.Preconditions.Absent {
		return nil, &usercode.ConfigError{Field: "Preconditions.Absent", Problem: "is set for a deletion, which needs an object; leave it out"}
	}
	return s.retryUntilCertain(ctx, key, opts.Suggestion, false, func(now assumed) (*store.Object, error) {
		return s.tryDelete(ctx, key, &opts, now.object)
	})
}

// tryDelete makes one attempt with the assumed object.
func (s *Storage) tryDelete(ctx context.Context, key string, opts *DeleteOptions, current *store.Object) (*store.Object, error) {
	if err := checkPreconditions(opts.Preconditions, key, current); err != nil {
		return nil, err
	}
	if err := allowed(ctx, key, opts.Validate, current); err != nil {
		return nil, err
	}
	gone, err := s.backend.Remove(ctx, current)
	return gone, ofBackend(err)
}

func allowed(ctx context.Context, key string, validate ValidateFunc, current *store.Object) (verdict error) {
	if validate == nil {
		return nil
	}
	if err := usercode.Call("DeleteOptions.Validate", key, func() { verdict = validate(ctx, current) }); err != nil {
		return err
	}
	return verdict
}
