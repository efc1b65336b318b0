package backend

import (
	"context"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// ValidateFunc decides whether an object may be deleted: an error keeps it. It
// may be called several times for one deletion, and must not change current,
// which is shared.
type ValidateFunc func(ctx context.Context, current *store.Object) error

// DeleteOptions qualifies a Delete. The zero value deletes whatever object has
// the key.
type DeleteOptions struct {
	// Preconditions must hold for the object that is deleted.
	Preconditions Preconditions
	// Validate has the last word, on the very state that is deleted; nil allows
	// it.
	Validate ValidateFunc
	// Suggestion is what the object probably is; see
	// [UpdateOptions.Suggestion].
	Suggestion *store.Object
}

// Delete deletes the object under key and returns its last state with the
// revision of the deletion. It tries again, from live state, as long as others
// write the object in between.
//
// Errors: [store.ErrNotFound], [store.ErrPrecondition], what Validate returned,
// [store.ErrInvalidKey], [usercode.ErrPanic], ctx's error, or whatever reaching storage
// met. None of them is final for being true of a stale suggestion.
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

// tryDelete makes one attempt on what the object is believed to be.
func (s *Storage) tryDelete(ctx context.Context, key string, opts *DeleteOptions, current *store.Object) (*store.Object, error) {
	if err := checkPreconditions(opts.Preconditions, key, current); err != nil {
		return nil, err
	}
	if err := allowed(ctx, key, opts.Validate, current); err != nil {
		return nil, err
	}
	gone, err := s.backend.Remove(ctx, current)
	return gone, lostRace(err)
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
