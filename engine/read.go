package engine

import (
	"context"
	"errors"

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

// Cached reads what the cache has, which may be old. It never waits and never
// touches the backend, except before the cache was first filled.
func Cached() Read { return Read{mode: cached} }

// NotOlderThan reads from the cache, once it has reached rev.
func NotOlderThan(rev Revision) Read { return Read{mode: notOlderThan, revision: rev} }

// Exactly reads the state at rev, from the cache's window if it reaches back so
// far, otherwise from the backend.
func Exactly(rev Revision) Read { return Read{mode: exactly, revision: rev} }

// GetOptions qualifies a Get.
type GetOptions struct {
	// Read says how fresh the object must be; zero means [Latest].
	Read Read
}

// Get returns the object under key. From the cache it takes no lock and waits
// for no writer.
//
// Errors: [ErrNotFound], [ErrInvalidKey], [ErrFuture] if a revision is not
// reached in time, [ErrExpired] if an exact one is no longer kept,
// [ErrEngineClosed], ctx's cause, or what the backend met.
func (e *Engine[T]) Get(ctx context.Context, key string, opts GetOptions) (*Object[T], error) {
	if err := e.open(); err != nil {
		return nil, err
	}
	if err := store.ValidateKey(key); err != nil {
		return nil, err
	}
	snap := e.published.Load()
	if !e.cfg.cached() || snap.Generation == 0 {
		snap = nil
	}
	switch opts.Read.mode {
	case exactly:
		return e.getExactly(ctx, key, opts.Read.revision)
	case latest:
		return e.storage.Get(ctx, key)
	case notOlderThan:
		if snap == nil {
			return e.getFromBackend(ctx, key, opts.Read.revision)
		}
		if err := e.fresh(ctx, opts.Read.revision); err != nil {
			return nil, err
		}
		snap = e.published.Load()
	}
	if snap == nil {
		return e.storage.Get(ctx, key)
	}
	if o := snap.State.Get(key); o != nil {
		return o, nil
	}
	return nil, ErrNotFound
}

// getFromBackend reads linearizably once the backend has reached rev.
func (e *Engine[T]) getFromBackend(ctx context.Context, key string, rev Revision) (*Object[T], error) {
	current, err := e.storage.Backend().Revision(ctx)
	if err != nil {
		return nil, err
	}
	if rev > current {
		return nil, &FutureError{Requested: rev, Current: current}
	}
	return e.storage.Get(ctx, key)
}

// getExactly reads one object of a past state.
func (e *Engine[T]) getExactly(ctx context.Context, key string, rev Revision) (*Object[T], error) {
	page, err := e.List(ctx, ListOptions{Key: key, Read: Exactly(rev)})
	if err != nil {
		return nil, err
	}
	if len(page.Items) == 0 {
		return nil, ErrNotFound
	}
	return page.Items[0], nil
}

// stateAt returns the state at rev from the cache's window.
func (e *Engine[T]) stateAt(ctx context.Context, rev Revision) (*store.Snapshot[T], error) {
	if rev == 0 {
		return nil, errors.New("exact read of revision 0: give a revision that a write or a list returned")
	}
	snap := e.published.Load()
	if rev > snap.Revision {
		if err := e.fresh(ctx, rev); err != nil {
			return nil, err
		}
		snap = e.published.Load()
	}
	state, err := snap.Window.StateAt(rev)
	if err != nil {
		return nil, err
	}
	return &store.Snapshot[T]{Revision: rev, State: state}, nil
}
