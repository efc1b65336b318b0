package engine

import (
	"context"
	"errors"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// Timeline identifies the history that revisions belong to. A new timeline begins when
// storage is restored from a copy, is replaced by another, or goes back in time: the same
// revision may then have other content. [List].Timeline is the timeline of a list; a
// watch with [WatchOptions].Timeline continues that one, or fails with [ErrExpired], and
// so does the list that continues another's page.
//
// A Timeline is valid for one engine only, so do not save it: save a [Checkpoint]. The
// zero value is unknown. Two can be compared with ==.
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
	of := t.of // t itself would be allocated even if it is not known
	return &of
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

// timeline returns the timeline of the cache's revisions or, before the first list, of
// storage itself.
func (e *core) timeline(ctx context.Context) (store.Timeline, error) {
	snap := e.published.Load()
	if snap.Generation > 0 {
		return snap.Timeline(), nil
	}
	return e.storageTimeline(ctx)
}

// storageTimeline returns the timeline of storage's answers from now on. If storage was
// replaced and the cache has not noticed, the epoch is too old for the new storage's ID,
// so the cache never has this timeline, and a watch that expects it is refused.
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
	return id, e.translateStorage(err)
}

// continues returns an [ErrExpired] if storage is not that of opts.Timeline, if known.
func (e *core) continues(ctx context.Context, opts *WatchOptions) error {
	if !opts.Timeline.known {
		return nil
	}
	id, err := e.knownStoreID(ctx)
	if err == nil && id != opts.Timeline.Store() {
		err = &ExpiredError{Requested: opts.From}
	}
	return err
}
