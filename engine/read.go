package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/window"
)

// readMode is the freshness of a read.
type readMode uint8

const (
	latest readMode = iota
	cached
	notOlderThan
	exactly
)

// Read is the freshness of a read. The zero value
// is [Latest].
type Read struct {
	mode     readMode
	revision Revision
}

// Latest reads linearizably: the read sees every write that was acknowledged before it
// began. It asks the backend for the object or for its newest revision.
//
// The exception is a list after storage was restored or replaced. If storage has reached the
// cache's revision again before the cache has noticed, or has no identity (see [backend.StoreID]),
// the list may show the old storage, as its [List].Timeline says.
func Latest() Read { return Read{} }

// Cached reads from the cache, which may be stale, even while the backend is
// unreachable. It never waits and never calls the backend, except before the first
// list.
func Cached() Read { return Read{mode: cached} }

// NotOlderThan reads from the cache, once it has reached rev. If it has already, this
// is the same as [Cached]. Before the first list, the backend answers for it: a [Cached]
// read that follows may then see an older state. Wait with [Engine.WaitForRevision] to exclude that.
func NotOlderThan(rev Revision) Read { return Read{mode: notOlderThan, revision: rev} }

// Exactly reads the state at rev, from the cache's window if it has rev, otherwise
// from the backend. It waits for a future rev. rev must not be zero.
func Exactly(rev Revision) Read { return Read{mode: exactly, revision: rev} }

// ErrInvalidRead: the read is invalid: Exactly(0).
var ErrInvalidRead = errors.New("invalid read")

func (r Read) validate() error {
	if r.mode == exactly && r.revision == 0 {
		return fmt.Errorf("%w: Exactly(0): give a revision that a write or a list returned", ErrInvalidRead)
	}
	return nil
}

// GetOptions are the options of Get.
type GetOptions struct {
	// Read says how fresh the object must be; zero means [Latest].
	Read Read
}

// Get returns the object under key. From the cache it takes no lock and does not wait
// for writers.
//
// Errors: [ErrNotFound], [ErrInvalidKey], [ErrInvalidRead], [ErrFuture] if a
// revision is not reached in time, [ErrExpired] if an exact one is no longer
// kept, [ErrNotReady] if what must be waited for cannot come,
// [ErrEngineClosed], ctx's cause, or the backend's error.
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
	return found(snap.Get(key), key)
}

// found returns Get's result for o, which is nil if there is no object under key.
func found(o *store.Object, key string) (*store.Object, error) {
	if o == nil {
		return nil, fmt.Errorf("get %q: %w", key, ErrNotFound)
	}
	return o, nil
}

// getFromBackend reads linearizably, if the backend has reached rev.
func (e *core) getFromBackend(ctx context.Context, key string, rev Revision) (*store.Object, error) {
	if rev > 0 {
		if err := e.storageReached(ctx, rev); err != nil {
			return nil, err
		}
	}
	o, err := e.storage.Get(ctx, key)
	return o, e.translateStorage(err)
}

// storageReached fails with [ErrFuture] if the backend has not reached rev.
func (e *core) storageReached(ctx context.Context, rev Revision) error {
	current, err := e.storage.Backend().Revision(ctx)
	if err == nil && current < rev {
		err = &FutureError{Requested: rev, Current: current}
	}
	return e.translateStorage(err)
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

// reached returns the cache's state once it is at rev or later. A state that is there
// already is served even if the source is unavailable.
func (e *core) reached(ctx context.Context, rev Revision) (*window.Snapshot, error) {
	if snap := e.published.Load(); snap.Generation > 0 && snap.Revision >= rev {
		return snap, nil
	}
	return e.freshSnapshot(ctx, rev)
}

// latest returns the cache's state once it has all writes acknowledged before the
// call. It fails with [ErrFuture] if the cache has yet to notice that storage has gone back.
func (e *core) latest(ctx context.Context) (*window.Snapshot, error) {
	had := e.published.Load()
	current, wentBack, err := e.linearizable(ctx, had)
	switch {
	case err != nil:
		return nil, err
	case wentBack:
		return nil, &FutureError{Requested: had.Revision, Current: current}
	}
	return e.freshSnapshot(ctx, current)
}

// linearizable asks storage for its newest revision, and reports whether storage has gone back to that, which the
// cache has yet to notice: it is another storage, at an older revision than what the cache had before the call. The
// same storage may have answered by a replica that lags.
func (e *core) linearizable(ctx context.Context, had *window.Snapshot) (current Revision, wentBack bool, err error) {
	current, err = e.storage.Backend().Revision(ctx)
	if err != nil {
		return 0, false, e.translateStorage(err)
	}
	if current >= had.Revision {
		return current, false, nil
	}
	id, err := e.knownStoreID(ctx)
	return current, id != had.StoreID, err
}

// stateAt returns the state at rev from the cache's window. With wait, it waits for a
// future rev.
func (e *core) stateAt(ctx context.Context, rev Revision, wait bool) (*window.Snapshot, error) {
	if wait && rev > e.published.Load().Revision {
		if _, err := e.reached(ctx, rev); err != nil {
			return nil, err
		}
	}
	if e.parts.cache.Distrusted() {
		return nil, &ExpiredError{Requested: rev}
	}
	snap := e.published.Load() // after the check, so that it is not one that a list has corrected meanwhile
	state, err := snap.StateAt(ctx, rev)
	if err != nil {
		return nil, err
	}
	return &window.Snapshot{Revision: rev, Base: state, StoreID: snap.StoreID, Epoch: snap.Epoch}, nil
}
