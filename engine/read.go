package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/watchmill/watchmill/actors/watchcache"
	"github.com/watchmill/watchmill/store"
)

// readMode is how fresh, or how old, what a read returns is.
type readMode uint8

const (
	latest readMode = iota
	cached
	notOlderThan
	exactly
)

// Read says how fresh, or how old, what a read returns must be. The zero value
// is [Latest].
type Read struct {
	mode     readMode
	revision Revision
}

// Latest reads linearizably: every write that was acknowledged before the read
// began is seen. It asks the backend, for the object or for its newest revision.
func Latest() Read { return Read{} }

// Cached reads what the cache has, which may be old: also while the backend
// cannot be reached. It never waits and never touches the backend, except before
// the cache was first filled.
func Cached() Read { return Read{mode: cached} }

// NotOlderThan reads from the cache, once it has reached rev. If it has already,
// that is as [Cached].
func NotOlderThan(rev Revision) Read { return Read{mode: notOlderThan, revision: rev} }

// Exactly reads the state at rev, from the cache's window if it reaches back so
// far, otherwise from the backend. If rev is yet to come it waits. Zero is no
// revision.
func Exactly(rev Revision) Read { return Read{mode: exactly, revision: rev} }

// ErrInvalidRead: the read makes no sense: Exactly(0).
var ErrInvalidRead = errors.New("invalid read")

func (r Read) validate() error {
	if r.mode == exactly && r.revision == 0 {
		return fmt.Errorf("%w: Exactly(0): give a revision that a write or a list returned", ErrInvalidRead)
	}
	return nil
}

// GetOptions qualifies a Get.
type GetOptions struct {
	// Read says how fresh the object must be; zero means [Latest].
	Read Read
}

// Get returns the object under key. From the cache it takes no lock and waits
// for no writer.
//
// Errors: [ErrNotFound], [ErrInvalidKey], [ErrInvalidRead], [ErrFuture] if a
// revision is not reached in time, [ErrExpired] if an exact one is no longer
// kept, [ErrNotReady] if what must be waited for cannot come,
// [ErrEngineClosed], ctx's cause, or what the backend met.
func (e *Engine[T]) Get(ctx context.Context, key string, opts GetOptions) (*Object[T], error) {
	o, err := e.core.get(ctx, key, opts)
	return typed[T](o), err
}

func (e *core) get(ctx context.Context, key string, opts GetOptions) (*store.Object, error) {
	if err := e.alive(); err != nil {
		return nil, err
	}
	if err := store.ValidateKey(key); err != nil {
		return nil, err
	}
	switch {
	case opts.Read.mode == exactly:
		return e.getExactly(ctx, key, opts.Read)
	case opts.Read.mode == latest, e.published.Load().Generation == 0:
		return e.getFromBackend(ctx, key, opts.Read.revision)
	}
	snap, err := e.reached(ctx, opts.Read.revision)
	if err != nil {
		return nil, err
	}
	return found(snap.State.Get(key), key)
}

// found is what Get returns of the object under key, nil if there is none.
func found(o *store.Object, key string) (*store.Object, error) {
	if o == nil {
		return nil, fmt.Errorf("get %q: %w", key, ErrNotFound)
	}
	return o, nil
}

// getFromBackend reads linearizably, if the backend has reached rev.
func (e *core) getFromBackend(ctx context.Context, key string, rev Revision) (*store.Object, error) {
	if rev > 0 {
		current, err := e.storage.Backend().Revision(ctx)
		if err != nil {
			return nil, err
		}
		if rev > current {
			return nil, &FutureError{Requested: rev, Current: current}
		}
	}
	return e.storage.Get(ctx, key)
}

// getExactly reads one object of a past state.
func (e *core) getExactly(ctx context.Context, key string, read Read) (*store.Object, error) {
	page, err := e.list(ctx, ListOptions{Key: key, Read: read})
	if err != nil {
		return nil, err
	}
	if len(page.Items) == 0 {
		return found(nil, key)
	}
	return page.Items[0], nil
}

// reached returns the cache's state once that is at rev or later. What is there
// already is served even if the cache has lost its source.
func (e *core) reached(ctx context.Context, rev Revision) (*store.Snapshot, error) {
	if snap := e.published.Load(); snap.Generation > 0 && snap.Revision >= rev {
		return snap, nil
	}
	if err := e.fresh(ctx, rev); err != nil {
		return nil, err
	}
	return e.published.Load(), nil
}

// latest returns the cache's state once it has all that was acknowledged before
// the call.
func (e *core) latest(ctx context.Context) (*store.Snapshot, error) {
	current, err := e.storage.Backend().Revision(ctx)
	if err != nil {
		return nil, err
	}
	if err := e.fresh(ctx, current); err != nil {
		return nil, err
	}
	return e.published.Load(), nil
}

// stateAt returns the state at rev from the cache's window. If rev is yet to
// come it waits for it, unless told not to.
func (e *core) stateAt(ctx context.Context, rev Revision, wait bool) (*store.Snapshot, error) {
	snap := e.published.Load()
	if rev > snap.Revision && wait {
		var err error
		if snap, err = e.reached(ctx, rev); err != nil {
			return nil, err
		}
	}
	if errors.Is(e.parts.cache.Check(e.host.system.Clock().Now()), watchcache.ErrInconsistent) {
		return nil, &ExpiredError{Requested: rev} // what was shown may never have been
	}
	state, err := snap.StateAt(ctx, rev)
	if err != nil {
		return nil, err
	}
	return &store.Snapshot{Revision: rev, State: state}, nil
}
