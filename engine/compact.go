package engine

import (
	"context"
	"errors"

	"github.com/watchmill/watchmill/actors/watchcache"
)

// Compact discards the history before rev, in the backend and then in the cache: after
// it, reads at and watches from older revisions fail with [ErrExpired]. A running watch
// continues, unless its next event was discarded: its Policy says what happens then.
// Compacting to an older revision than before does nothing.
//
// It first gives the cache up to [Config].FreshnessTimeout to reach rev. A cache that has not
// by then finds its next events discarded, and lists the state again.
//
// A compaction of the backend itself, or by another process, does not reach the cache,
// which serves its window until [Window] bounds it. That history is still true, but its
// memory is not freed.
//
// Errors: [ErrFuture] if rev has not happened, [ErrDraining], [ErrEngineClosed],
// [ErrNotReady] if the backend was compacted and the cache does not answer, ctx's
// cause, or the backend's error.
func (e *Engine[T]) Compact(ctx context.Context, rev Revision) error {
	return e.core.compact(ctx, rev)
}

func (e *core) compact(ctx context.Context, rev Revision) error {
	if err := e.accepts(); err != nil {
		return err
	}
	if e.cfg.cached() {
		if err := e.catchUp(ctx, rev); err != nil {
			return err
		}
	}
	if err := e.storage.Backend().Compact(ctx, rev); err != nil || !e.cfg.cached() {
		return e.translateStorage(err)
	}
	reply := make(chan error, 1)
	e.parts.cache.Compact(watchcache.Compact{Revision: rev, Reply: reply})
	return e.translate(e.host.replyWithin(ctx, e.cfg.freshnessTimeout, reply))
}

// catchUp lets the cache take the changes up to rev before the backend discards them. One that
// is late, or not ready, does not prevent that.
func (e *core) catchUp(ctx context.Context, rev Revision) error {
	if e.newest() >= rev {
		return nil
	}
	if err := e.storageReached(ctx, rev); err != nil {
		return err
	}
	err := e.fresh(ctx, rev)
	if errors.Is(err, ErrFuture) || errors.Is(err, ErrIdle) || errors.Is(err, ErrNotReady) {
		return nil
	}
	return err
}
