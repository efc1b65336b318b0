package engine

import (
	"context"

	"github.com/watchmill/watchmill/actors/watchcache"
)

// Compact gives up the history before rev, in the backend and then in the cache: when
// it has returned, reads at and watches from older revisions fail with [ErrExpired].
// A running watch goes on, unless it is so far behind that its next event was given
// up: then it is overrun, and its Policy says what happens. A rev that was given up
// before does nothing.
//
// A compaction that is asked of the backend itself, or by another process, does not
// reach the cache, which serves its window's history until [Window] says that it is too
// much: that is sound, since the history is true, but frees no memory.
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
	if err := e.storage.Backend().Compact(ctx, rev); err != nil || !e.cfg.cached() {
		return err
	}
	reply := make(chan error, 1)
	e.parts.cache.Compact(watchcache.Compact{Revision: rev, Reply: reply})
	return e.why(e.host.replyWithin(ctx, e.cfg.freshnessTimeout, reply))
}
