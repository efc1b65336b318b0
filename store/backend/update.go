package backend

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// UpdateFunc returns what an object should be, given what it is: a new object of
// which only the value is filled in. current is nil if there is no object (only
// with [UpdateOptions.CreateIfMissing]). It is shared and must not be changed.
// An error ends the update.
//
// It may be called several times for one update, so it must have no effect but
// its result, and the error that counts is that of the call on live state.
type UpdateFunc func(ctx context.Context, current *store.Object) (draft *store.Object, err error)

// UpdateOptions qualifies a GuaranteedUpdate. The zero value updates whatever
// object has the key.
type UpdateOptions struct {
	// Preconditions must hold for the object that is replaced.
	Preconditions Preconditions
	// Suggestion is what the object probably is, from a cache: it saves the
	// read before the write. One that is stale costs a second try and nothing
	// else; nil, or an object with another key, is no suggestion.
	Suggestion *store.Object
	// CreateIfMissing calls the function with nil and creates the object if
	// there is none, instead of failing with [store.ErrNotFound]. So does a
	// precondition that demands that there is none.
	CreateIfMissing bool
	// TTL is how long the object lives from this update on; zero leaves it to expire
	// when it would have, be that never.
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

// putOptions returns the options of a write over an object that keeps its expiry
// unless it gets another one.
func putOptions(ttl time.Duration, permanent bool) PutOptions {
	return PutOptions{TTL: ttl, KeepExpiry: ttl == 0 && !permanent}
}

// validateExpiry judges the TTL and Permanent of the struct with that name.
func validateExpiry(options string, ttl time.Duration, permanent bool) error {
	if ttl != 0 && permanent {
		return &usercode.ConfigError{Field: options + ".Permanent", Problem: fmt.Sprintf("is set beside a TTL of %v; give one of them", ttl)}
	}
	return validateTTL(options+".TTL", ttl, "the object expires when it would have")
}

// GuaranteedUpdate replaces the object under key by what update makes of it,
// and returns it as stored. It tries again, from live state, as long as others
// write the object in between. An update to an equal value writes nothing and
// returns the live object, unless it would change when that expires.
//
// Errors: [store.ErrNotFound], [store.ErrPrecondition], what update returned,
// [store.ErrInvalidKey] (as a [*KeyMismatchError] if the new value has another
// key), [usercode.ErrConfig], [usercode.ErrPanic], ctx's error, or whatever reaching
// storage met. None of them is final for being true of a stale suggestion.
func (s *Storage) GuaranteedUpdate(ctx context.Context, key string, update UpdateFunc, opts UpdateOptions) (*store.Object, error) {
	if err := store.ValidateKey(key); err != nil {
		return nil, err
	}
	if err := opts.validate(); err != nil {
		return nil, err
	}
	missingOK := opts.CreateIfMissing || opts.Preconditions.Absent
	return s.retryUntilCertain(ctx, key, opts.Suggestion, missingOK, func(now assumed) (*store.Object, error) {
		return s.tryUpdate(ctx, key, update, &opts, now)
	})
}

// tryUpdate makes one attempt on what the object is believed to be.
func (s *Storage) tryUpdate(ctx context.Context, key string, update UpdateFunc, opts *UpdateOptions, now assumed) (*store.Object, error) {
	if err := checkPreconditions(opts.Preconditions, key, now.object); err != nil {
		return nil, err
	}
	draft, err := s.nextValue(ctx, key, update, now.object)
	if err != nil {
		return nil, err
	}
	return s.replace(ctx, key, draft, now, opts.put())
}

// replace writes draft over what the object is believed to be, unless that would
// change nothing.
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
	return written, lostRace(err)
}

// nextValue runs update, and makes sure that the object keeps its key.
func (s *Storage) nextValue(ctx context.Context, key string, update UpdateFunc, current *store.Object) (draft *store.Object, err error) {
	if update == nil {
		return nil, &usercode.ConfigError{Field: "update", Problem: "is nil; give a function that returns the new value"}
	}
	var failure error
	if err := usercode.Call("UpdateFunc", key, func() { draft, failure = update(ctx, current) }); err != nil {
		return nil, err
	}
	if failure != nil {
		return nil, failure
	}
	return draft, s.checkKey(key, draft)
}

// checkKey returns an error unless draft belongs under key.
func (s *Storage) checkKey(key string, draft *store.Object) error {
	if draft != nil {
		draft.Key = key // for a schema that takes the key from there
	}
	got, err := s.keyOf(draft)
	if err == nil && got != key {
		err = cmp.Or(store.ValidateKey(got), error(&KeyMismatchError{Key: key, Got: got}))
	}
	return err
}

// changesNothing reports whether writing draft over current would leave both
// the value and the time it lives as they are.
func (s *Storage) changesNothing(current, draft *store.Object, opts PutOptions) (same bool, err error) {
	if current == nil || opts.TTL != 0 || !opts.KeepExpiry && !current.Expires.IsZero() {
		return false, nil
	}
	err = usercode.Call("Schema.Equal", current.Key, func() { same = s.schema.Equal(current, draft) })
	return same, err
}
