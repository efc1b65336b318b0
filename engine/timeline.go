package engine

import (
	"context"
	"errors"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// Timeline is the history of storage that revisions belong to. Another begins when
// storage was restored from a copy, was replaced by another, or went back in time: the
// same revision may then have other content. [List].Timeline is that of a list, and
// [WatchOptions].Timeline has a watch continue that history or none.
//
// It is of one engine, and not for saving: [Checkpoint] is. The zero value is unknown.
// Two can be compared with ==.
type Timeline struct {
	known bool
	of    store.Timeline
}

// Known reports whether t is a timeline, and not the zero value.
func (t Timeline) Known() bool { return t.known }

// Store returns the identity of the storage, "" if that has none; see
// [backend.StoreID].
func (t Timeline) Store() string { return t.of.StoreID }

// String returns a text for logs.
func (t Timeline) String() string {
	if !t.known {
		return "unknown"
	}
	return t.of.String()
}

func timelineOf(t store.Timeline) Timeline { return Timeline{known: true, of: t} }

// expected returns the timeline that a watch must be of, nil for any.
func (t Timeline) expected() *store.Timeline {
	if !t.known {
		return nil
	}
	return &t.of
}

// Timeline returns the history that the engine's revisions belong to now, as far as its
// cache has noticed. It blocks until the cache has been filled for the first time.
// Without a cache it asks the backend.
//
// Errors: [ErrNotReady], [ErrEngineClosed], ctx's cause, or the backend's error.
func (e *Engine[T]) Timeline(ctx context.Context) (Timeline, error) { return e.core.timelineNow(ctx) }

func (e *core) timelineNow(ctx context.Context) (Timeline, error) {
	if err := e.alive(); err != nil {
		return Timeline{}, err
	}
	if !e.cfg.cached() {
		id, err := e.knownStoreID(ctx)
		return timelineOf(store.Timeline{StoreID: id}), err
	}
	snap, err := e.reached(ctx, 0)
	if err != nil {
		return Timeline{}, err
	}
	return timelineOf(snap.Timeline()), nil
}

// timeline returns that of the cache's revisions: before the first list, of storage
// itself.
func (e *core) timeline(ctx context.Context) (store.Timeline, error) {
	snap := e.published.Load()
	if snap.Generation > 0 {
		return snap.Timeline(), nil
	}
	return e.storageTimeline(ctx)
}

// storageTimeline returns the timeline of what storage answers from now on. While the
// cache is of another storage it is one that the cache never comes to: a watch that
// is to continue it is refused.
func (e *core) storageTimeline(ctx context.Context) (store.Timeline, error) {
	epoch := e.published.Load().Epoch
	id, err := e.knownStoreID(ctx)
	return store.Timeline{StoreID: id, Epoch: epoch}, err
}

// knownStoreID returns the storage's identity, empty if it has none.
func (e *core) knownStoreID(ctx context.Context) (string, error) {
	id, err := backend.StoreID(ctx, e.storage.Backend())
	if errors.Is(err, ErrUnsupported) {
		return "", nil
	}
	return id, err
}

// continues fails with [ErrExpired] if storage is not of the timeline that the watch
// is to continue.
func (e *core) continues(ctx context.Context, opts WatchOptions) error {
	if !opts.Timeline.known {
		return nil
	}
	id, err := e.knownStoreID(ctx)
	if err == nil && id != opts.Timeline.Store() {
		err = &ExpiredError{Requested: opts.From}
	}
	return err
}
