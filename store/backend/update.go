package backend

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// UpdateFunc returns a new object, with only the value filled in, for the current one.
// current is shared and must not be changed. It is nil if there is no object, which
// happens only with [UpdateOptions.CreateIfMissing]. An error ends the update.
//
// It may be called several times for one update, so it must have no effect besides its
// result; only the error of a call with the live object is returned.
type UpdateFunc func(ctx context.Context, current *store.Object) (draft *store.Object, err error)

// UpdateOptions qualifies a GuaranteedUpdate. The zero value updates any object with the
// key.
type UpdateOptions struct {
	// Preconditions must hold for the object that is replaced.
	Preconditions Preconditions
	// Suggestion is the assumed object, from a cache, which saves the read before the
	// write. A stale one only costs a second try. Nil, or an object with another key or
	// without a revision, has no effect.
	Suggestion *store.Object
	// CreateIfMissing calls the function with nil and creates the object if there is
	// none, instead of failing with [store.ErrNotFound]. So does Preconditions.Absent.
	CreateIfMissing bool
	// TTL is how long the object lives from this update on; zero keeps its expiry.
	TTL time.Duration
	// Permanent makes the object permanent. TTL must be zero then.
	Permanent bool
}

// put returns the options of the write.
func (o *UpdateOptions) put() PutOptions { return putOptions(o.TTL, o.Permanent) }

func (o *UpdateOptions) validate() error {
	if err := o.Preconditions.validate(); err != nil {
		return err
	}
	return validateExpiry("UpdateOptions", o.TTL, o.Permanent)
}

// putOptions returns the options of a write that keeps the object's expiry unless ttl or
// permanent is set.
func putOptions(ttl time.Duration, permanent bool) PutOptions {
	return PutOptions{TTL: ttl, KeepExpiry: ttl == 0 && !permanent}
}

// validateExpiry validates the TTL and Permanent of the struct with that name.
func validateExpiry(options string, ttl time.Duration, permanent bool) error {
	if ttl != 0 && permanent {
		return &usercode.ConfigError{Field: options + ".Permanent", Problem: fmt.Sprintf("is set together with a TTL of %v; give one of them", ttl)}
	}
	return validateTTL(options, ttl, "the object expires when it would have")
}

// GuaranteedUpdate replaces the object under key by update's result for it, and returns
// the stored object. It tries again with the live object while concurrent writes change
// it. An update to an equal value writes nothing and returns the live object, unless it
// changes the expiry.
//
// Errors: [store.ErrNotFound], [store.ErrPrecondition], what update returned,
// [store.ErrInvalidKey] (as a [*KeyMismatchError] if the new value has another
// key), [usercode.ErrConfig], [usercode.ErrPanic], ctx's cause, or an error of reaching
// storage. Those that depend on the object are of the live one, not of a stale
// suggestion.
func (s *Storage) GuaranteedUpdate(ctx context.Context, key string, update UpdateFunc, opts UpdateOptions) (*store.Object, error) {
	return s.updateTo(ctx, key, opts, func(current *store.Object) (*store.Object, error) {
		return s.nextValue(ctx, key, update, current)
	})
}

// Put is a GuaranteedUpdate to draft, whatever object there is. The key is draft.Key, which
// must be what the schema returns for draft.
//
// Prepare, if it is not nil, is called before each attempt with the current object and a
// copy of draft, which it may change, but not to another key. Its error ends the update.
func (s *Storage) Put(ctx context.Context, draft *store.Object, prepare func(ctx context.Context, current, draft *store.Object) error, opts UpdateOptions) (*store.Object, error) {
	key := draft.Key
	return s.updateTo(ctx, key, opts, func(current *store.Object) (*store.Object, error) {
		if prepare == nil {
			return draft, nil
		}
		prepared := s.schema.Clone(draft)
		var failure error
		panicked := usercode.Call("prepare", key, func() { failure = prepare(ctx, current, prepared) })
		if err := cmp.Or(panicked, failure); err != nil {
			return nil, err
		}
		return prepared, s.checkKey(key, prepared)
	})
}

// updateTo replaces the object under key by what next returns for it, which has that key.
func (s *Storage) updateTo(ctx context.Context, key string, opts UpdateOptions, next func(current *store.Object) (*store.Object, error)) (*store.Object, error) {
	if err := store.ValidateKey(key); err != nil {
		return nil, err
	}
	if err := opts.validate(); err != nil {
		return nil, err
	}
	missingOK := opts.CreateIfMissing || opts.Preconditions.Absent
	return s.retryUntilCertain(ctx, key, opts.Suggestion, missingOK, func(now assumed) (*store.Object, error) {
		if err := checkPreconditions(opts.Preconditions, key, now.object); err != nil {
			return nil, err
		}
		draft, err := next(now.object)
		if err != nil {
			return nil, err
		}
		return s.replace(ctx, key, draft, now, opts.put())
	})
}

// replace writes draft in place of the assumed object, unless that would change nothing.
func (s *Storage) replace(ctx context.Context, key string, draft *store.Object, now assumed, opts PutOptions) (*store.Object, error) {
	same, err := s.changesNothing(now.object, draft, opts)
	switch {
	case err != nil:
		return nil, err
	case same && now.live:
		return now.object, nil
	case same:
		return nil, errUnverified
	}
	written, err := s.put(ctx, key, draft, now.object, opts)
	return written, ofBackend(err)
}

// nextValue runs update and checks that the object keeps its key.
func (s *Storage) nextValue(ctx context.Context, key string, update UpdateFunc, current *store.Object) (draft *store.Object, err error) {
	if update == nil {
		return nil, &usercode.ConfigError{Field: "update", Problem: "is nil; give a function that returns the new value"}
	}
	var failure error
	if err := usercode.Call("UpdateFunc", key, func() { draft, failure = update(ctx, current) }); err != nil {
		return nil, err
	}
	switch {
	case failure != nil:
		return nil, failure
	case draft == nil:
		return nil, &usercode.ConfigError{Field: "UpdateFunc", Problem: "returned nil; give the new object, or an error"}
	}
	return draft, s.checkKey(key, draft)
}

// checkKey returns an error unless the schema's key for draft is key.
func (s *Storage) checkKey(key string, draft *store.Object) error {
	draft.Key = key // for a schema that takes the key from there
	got, err := s.keyOf(draft)
	if err == nil {
		err = CheckKey(key, got)
	}
	return err
}

// CheckKey returns an error unless got, the key of a value, is that under which it is to be
// written: a [*store.KeyError] if got cannot be a key, else a [*KeyMismatchError].
func CheckKey(key, got string) error {
	if got == key {
		return nil
	}
	return cmp.Or(store.ValidateKey(got), error(&KeyMismatchError{Key: key, Got: got}))
}

// changesNothing reports whether writing draft over current would change neither the
// value nor the expiry.
func (s *Storage) changesNothing(current, draft *store.Object, opts PutOptions) (same bool, err error) {
	if current == nil || opts.TTL != 0 || !opts.KeepExpiry && !current.Expires.IsZero() {
		return false, nil
	}
	err = usercode.Call("Schema.Equal", current.Key, func() { same = s.schema.Equal(current, draft) })
	return same, err
}
