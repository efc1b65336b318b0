package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/watchmill/watchmill/actors/watchcache"
	"github.com/watchmill/watchmill/store/window"
)

// fresh waits until the cache is ready and has reached rev. It honours ctx, and
// gives up after FreshnessTimeout with [ErrFuture] or [ErrNotReady], and at once if the
// backend has ended for good.
func (e *core) fresh(ctx context.Context, rev Revision) error {
	return e.freshWithin(ctx, rev, e.cfg.freshnessTimeout)
}

// freshWithin is fresh that gives up after limit.
func (e *core) freshWithin(ctx context.Context, rev Revision, limit time.Duration) error {
	if e.parts.cache.Ready() && e.published.Load().Revision >= rev {
		return nil
	}
	now := e.clockNow()
	e.counts.waits.Add(1)
	reply := make(chan error, 1)
	e.parts.cache.Wait(watchcache.Wait{Revision: rev, Until: now.Add(limit), Done: ctx.Done(), Reply: reply})
	err := e.host.replyWithin(ctx, limit, reply)
	if m := e.metrics(); m != nil {
		e.waited(m, WaitRead, e.clockNow().Sub(now))
	}
	return e.translate(err)
}

// freshSnapshot returns the cache's state once fresh has returned, unless storage has gone back since.
func (e *core) freshSnapshot(ctx context.Context, rev Revision) (*window.Snapshot, error) {
	if err := e.fresh(ctx, rev); err != nil {
		return nil, err
	}
	snap := e.published.Load()
	if snap.Revision < rev {
		return nil, &FutureError{Requested: rev, Current: snap.Revision}
	}
	return snap, nil
}

// endedForGood reports whether err is of a cache that never becomes ready again.
func endedForGood(err error) bool {
	notReady, is := errors.AsType[*NotReadyError](err)
	return is && notReady.Final
}

// WaitForRevision blocks until the cache has reached rev, so that reads from the cache
// see the write that returned it: read your own writes. Without a cache, where every read
// goes to the backend, it returns at once.
//
// Errors: [ErrFuture] if the cache does not reach rev within [Config].FreshnessTimeout;
// [ErrNotReady] if it is not even ready by then, or if OnPool handlers block all workers of the
// host for as long, or at once, by a [*NotReadyError] that is Final, if the backend has ended
// for good; [ErrEngineClosed]; ctx's cause.
func (e *Engine[T]) WaitForRevision(ctx context.Context, rev Revision) error {
	return e.core.waitFor(ctx, rev)
}

func (e *core) waitFor(ctx context.Context, rev Revision) error {
	if err := e.alive(); err != nil {
		return err
	}
	if !e.cfg.cached() {
		return nil // every read goes to the backend
	}
	return e.fresh(ctx, rev)
}

// WaitReady blocks until the cache is ready: it has read the state of storage, and the
// history if storage keeps one across restarts, and is not reading them again. Without a cache
// it returns at once. Reads, watches and [Engine.WaitForRevision] wait for the same, and no longer than
// [Config].FreshnessTimeout.
//
// Errors: [ErrNotReady] at once, by a [*NotReadyError] that is Final, if the backend has
// ended for good; [ErrEngineClosed]; ctx's cause, together with the [*NotReadyError] that says
// why the cache is not ready.
func (e *Engine[T]) WaitReady(ctx context.Context) error { return e.core.waitReady(ctx) }

func (e *core) waitReady(ctx context.Context) error {
	if err := e.alive(); err != nil {
		return err
	}
	err := e.waitUntimed(ctx, 0)
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return e.whyNotReady(err)
	}
	return err
}

// waitUntimed waits until the cache, if there is one, is ready and has reached rev, as long as ctx
// allows. A cache that fails meanwhile is restarted, and waited for again.
func (e *core) waitUntimed(ctx context.Context, rev Revision) error {
	if !e.cfg.cached() {
		return nil
	}
	for {
		err := e.freshWithin(ctx, rev, math.MaxInt64)
		switch {
		case !errors.Is(err, ErrNotReady) || endedForGood(err):
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
	}
}

// whyNotReady adds to the error of a wait, which has ended, why the cache is not ready; nil if
// it is by now.
func (e *core) whyNotReady(ended error) error {
	reason := e.translate(e.parts.cache.Check(e.clockNow()))
	if reason == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ended, reason)
}

// ensureReached is waitFor that, without a cache, fails with [ErrFuture] if storage has not
// reached rev.
func (e *core) ensureReached(ctx context.Context, rev Revision) error {
	if e.cfg.cached() {
		return e.waitFor(ctx, rev)
	}
	return e.storageReached(ctx, rev)
}

// Revision returns the newest revision that the cache has reached; zero before its first
// list, and without a cache. It does not block.
func (e *Engine[T]) Revision() Revision { return e.core.newest() }

func (e *core) newest() Revision { return e.published.Load().Revision }
