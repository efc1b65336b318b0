package backend

import (
	"context"
	"errors"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// assumed is the object that an attempt of an update or a deletion assumes: the caller's
// suggestion, usually from a cache and possibly stale, or else the live object. An
// attempt with a suggestion may fail only because it is stale, so the failure counts
// only if the live object has the same revision:
//
//	suggestion ──try──▶ ok, or the outcome is unknown ───────▶ done
//	               └──▶ failed ──read live──▶ same revision ──▶ the failure is final
//	                                   └────▶ another one ────▶ try again with the live object
//	live ──try──▶ ok ────────────────────────────────────────▶ done
//	         ├──▶ failed ────────────────────────────────────▶ the failure is final
//	         └──▶ changed meanwhile ──read live──▶ try again, until ctx ends
type assumed struct {
	// object is nil if the object is assumed not to exist.
	object *store.Object
	// live: read from storage by this call, not suggested.
	live bool
}

// raced wraps the backend's error that the object did not have the assumed revision. It
// distinguishes it from errors of user code, which may return store.ErrConflict too.
type raced struct{ err error }

func (r raced) Error() string { return r.err.Error() }

// undecided wraps the backend's error that the outcome of the write is unknown, and
// distinguishes it likewise.
type undecided struct{ err error }

func (u undecided) Error() string { return u.err.Error() }

// errUnverified: nothing needs to be written, provided that the suggestion is the live
// object.
var errUnverified = errors.New("nothing to write, if the suggestion is the live object")

// tryFunc attempts the operation with the assumed object.
type tryFunc func(assumed) (*store.Object, error)

// retryUntilCertain tries until the outcome is certain; see [assumed].
func (s *Storage) retryUntilCertain(ctx context.Context, key string, suggestion *store.Object, missingOK bool, try tryFunc) (*store.Object, error) {
	now := assumed{object: suggestion}
	if suggestion == nil || suggestion.Key != key || suggestion.Revision == 0 {
		var err error
		if now, err = s.readLive(ctx, key, missingOK); err != nil {
			return nil, err
		}
	}
	for {
		result, failure := try(now)
		if unknown, ok := failure.(undecided); ok {
			return result, unknown.err // a second try could meet the first
		}
		race, lost := failure.(raced)
		if failure == nil || now.live && !lost {
			return result, failure
		}
		fresh, err := s.recheck(ctx, race, key, missingOK)
		switch {
		case err != nil:
			return nil, err
		case lost || fresh.revision() != now.revision():
			now = fresh
		case failure == errUnverified:
			return fresh.object, nil
		default:
			return nil, failure
		}
	}
}

// recheck returns the live object after a failure: that in the backend's conflict error,
// if it has one, or else by reading it.
func (s *Storage) recheck(ctx context.Context, race raced, key string, missingOK bool) (assumed, error) {
	var conflict *ConflictError
	if !errors.As(race.err, &conflict) || conflict.Key != key || ctx.Err() != nil {
		return s.readLive(ctx, key, missingOK)
	}
	if conflict.Current == nil && !missingOK {
		return assumed{}, &store.NotFoundError{Key: key}
	}
	return assumed{object: conflict.Current, live: true}, nil
}

// readLive reads the live object, unless ctx has ended. A missing one is an error unless
// missingOK.
func (s *Storage) readLive(ctx context.Context, key string, missingOK bool) (assumed, error) {
	if ctx.Err() != nil {
		return assumed{}, context.Cause(ctx)
	}
	o, err := s.backend.Get(ctx, key)
	if missingOK && errors.Is(err, store.ErrNotFound) {
		return assumed{live: true}, nil
	}
	return assumed{object: o, live: true}, err
}

// revision is that of the object; zero if there is none.
func (a assumed) revision() store.Revision {
	if a.object == nil {
		return 0
	}
	return a.object.Revision
}

// ofBackend marks the backend's errors that say that the object does not have the
// revision that the write expected, or that the outcome is unknown.
func ofBackend(err error) error {
	switch {
	case Uncertain(err):
		return undecided{err}
	case errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrExists):
		return raced{err}
	}
	return err
}

// Preconditions restrict a write to a certain state of the object. The zero value allows
// any.
type Preconditions struct {
	// UID is the revision at which the object was created
	// ([store.Object.Created]): with the key, it is the object's identity. Zero
	// means any.
	UID store.Revision
	// Revision is the revision that the object must be at. Zero means any.
	Revision store.Revision
	// Absent: there must be no object under the key, so that an update creates it.
	// The other preconditions must be zero then. A deletion refuses it.
	Absent bool
}

func (p Preconditions) validate() error {
	if p.Absent && (p.UID != 0 || p.Revision != 0) {
		return &usercode.ConfigError{Field: "Preconditions.Absent", Problem: "is set together with UID or Revision, which no absent object has; give one of them"}
	}
	return nil
}

// checkPreconditions returns a [*store.PreconditionError] unless o, which is nil if there is
// no object under key, is the one meant.
func checkPreconditions(p Preconditions, key string, o *store.Object) error {
	var uid, revision store.Revision
	if o != nil {
		uid, revision = o.Created, o.Revision
	}
	switch {
	case p.Absent && o != nil:
		return &store.PreconditionError{Key: key, Field: "Absent", Got: revision}
	case p.UID != 0 && p.UID != uid:
		return &store.PreconditionError{Key: key, Field: "UID", Want: p.UID, Got: uid}
	case p.Revision != 0 && p.Revision != revision:
		return &store.PreconditionError{Key: key, Field: "Revision", Want: p.Revision, Got: revision}
	}
	return nil
}
