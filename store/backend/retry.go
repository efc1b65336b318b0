package backend

import (
	"context"
	"errors"

	"github.com/watchmill/watchmill/store"
)

// An update or a deletion begins with what it believes to be the object: the
// caller's suggestion, usually out of a cache and possibly stale, or else the
// live object. Whatever fails on a suggestion may have failed only because it
// was stale, so it proves nothing until storage says that it was not:
//
//	suggestion ──try──▶ ok ─────────────────────────────────▶ done
//	               └──▶ failed ──read live──▶ same revision ─▶ the failure is final
//	                                   └────▶ another one ───▶ try again, now with live
//	live ──try──▶ ok ───────────────────────────────────────▶ done
//	         ├──▶ failed ───────────────────────────────────▶ the failure is final
//	         └──▶ another write in between ──read live──▶ try again, until ctx ends
type assumed struct {
	// object is nil if the object is assumed not to exist.
	object *store.Object
	// live: read from storage by this call, not suggested.
	live bool
}

// raced wraps the backend's answer that the object was not at the revision
// assumed. It distinguishes it from an error of user code, which may return store.ErrConflict
// too.
type raced struct{ err error }

func (r raced) Error() string { return r.err.Error() }

// errUnverified is a try's answer that nothing needs to be written, if only
// the suggestion that it went by is live.
var errUnverified = errors.New("nothing to write, if the suggestion is live")

// tryFunc attempts the operation on what the object is believed to be.
type tryFunc func(assumed) (*store.Object, error)

// retryUntilCertain tries until the outcome is certain: see assumed.
func (s *Storage) retryUntilCertain(ctx context.Context, key string, suggestion *store.Object, missingOK bool, try tryFunc) (*store.Object, error) {
	now := assumed{object: suggestion}
	if suggestion == nil || suggestion.Key != key {
		var err error
		if now, err = s.look(ctx, key, missingOK); err != nil {
			return nil, err
		}
	}
	for {
		result, failure := try(now)
		race, lost := failure.(raced)
		if failure == nil || now.live && !lost {
			return result, failure
		}
		fresh, err := s.after(ctx, race, key, missingOK)
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

// after returns the live object after a failure: out of the error by which the
// backend said that a race was lost, if it has it, and else by reading it.
func (s *Storage) after(ctx context.Context, race raced, key string, missingOK bool) (assumed, error) {
	var conflict *ConflictError
	if !errors.As(race.err, &conflict) || conflict.Key != key || ctx.Err() != nil {
		return s.look(ctx, key, missingOK)
	}
	if conflict.Current == nil && !missingOK {
		return assumed{}, &store.NotFoundError{Key: key}
	}
	return assumed{object: conflict.Current, live: true}, nil
}

// look reads the live object, unless ctx has ended. A missing one is an error
// unless missingOK.
func (s *Storage) look(ctx context.Context, key string, missingOK bool) (assumed, error) {
	if err := ctx.Err(); err != nil {
		return assumed{}, err
	}
	o, err := s.backend.Get(ctx, key)
	if missingOK && errors.Is(err, store.ErrNotFound) {
		return assumed{live: true}, nil
	}
	return assumed{object: o, live: true}, err
}

// revision is that of the object; zero if there is none.
func (b assumed) revision() store.Revision {
	if b.object == nil {
		return 0
	}
	return b.object.Revision
}

// lostRace marks those of a backend's errors that say that the object was not
// at the revision that the write expected.
func lostRace(err error) error {
	if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrExists) {
		return raced{err}
	}
	return err
}
