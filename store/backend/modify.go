package backend

import (
	"context"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// Change is what [Storage.Modify] does with an object.
type Change struct {
	// Draft is the object to store. Only its value is filled in.
	Draft *store.Object
	// TTL and Permanent are as in [UpdateOptions].
	TTL       time.Duration
	Permanent bool
	// Delete deletes the object; the other fields are ignored then.
	Delete bool
}

func (c *Change) validate() error {
	if c.Delete {
		return nil
	}
	if c.Draft == nil {
		return &usercode.ConfigError{Field: "Change.Draft", Problem: "is nil; give the object to store, or set Delete"}
	}
	return validateExpiry("Change", c.TTL, c.Permanent)
}

// ModifyFunc is an [UpdateFunc] that sees when the object expires and can choose
// another time, or delete the object. The same rules hold for it.
type ModifyFunc func(ctx context.Context, current *store.Object) (Change, error)

// ModifyOptions qualifies a Modify. Its fields are as in [UpdateOptions].
type ModifyOptions struct {
	Preconditions   Preconditions
	Suggestion      *store.Object
	CreateIfMissing bool
}

// Modify replaces or deletes the object under key, as modify decides, and returns
// it as stored, or its last state with the revision of the deletion. It tries again
// as GuaranteedUpdate does. A deletion without an object fails with
// [store.ErrNotFound].
//
// Errors: as for GuaranteedUpdate.
func (s *Storage) Modify(ctx context.Context, key string, modify ModifyFunc, opts ModifyOptions) (*store.Object, error) {
	if err := store.ValidateKey(key); err != nil {
		return nil, err
	}
	if modify == nil {
		return nil, &usercode.ConfigError{Field: "modify", Problem: "is nil; give a function that returns the change"}
	}
	if err := opts.Preconditions.validate(); err != nil {
		return nil, err
	}
	missingOK := opts.CreateIfMissing || opts.Preconditions.Absent
	return s.retryUntilCertain(ctx, key, opts.Suggestion, missingOK, func(now assumed) (*store.Object, error) {
		return s.tryModify(ctx, key, modify, &opts, now)
	})
}

// tryModify makes one attempt with the assumed object.
func (s *Storage) tryModify(ctx context.Context, key string, modify ModifyFunc, opts *ModifyOptions, now assumed) (*store.Object, error) {
	if err := checkPreconditions(opts.Preconditions, key, now.object); err != nil {
		return nil, err
	}
	change, err := s.nextChange(ctx, key, modify, now.object)
	switch {
	case err != nil:
		return nil, err
	case !change.Delete:
		return s.replace(ctx, key, change.Draft, now, putOptions(change.TTL, change.Permanent))
	case now.object == nil:
		return nil, &store.NotFoundError{Key: key}
	}
	gone, err := s.backend.Remove(ctx, now.object)
	return gone, ofBackend(err)
}

// nextChange runs modify and validates its result.
func (s *Storage) nextChange(ctx context.Context, key string, modify ModifyFunc, current *store.Object) (change Change, err error) {
	var failure error
	if err := usercode.Call("ModifyFunc", key, func() { change, failure = modify(ctx, current) }); err != nil {
		return Change{}, err
	}
	if failure != nil {
		return Change{}, failure
	}
	if err := change.validate(); err != nil || change.Delete {
		return change, err
	}
	return change, s.checkKey(key, change.Draft)
}
