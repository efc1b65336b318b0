// Package caughtup waits for the cache of an engine as long as the caller's context lasts, and not only as long
// as a read of the engine does: loads and benchmarks are to begin, however late.
package caughtup

import (
	"context"
	"errors"

	"github.com/watchmill/watchmill/engine"
)

// Engine is an [engine.Engine] of any type.
type Engine interface {
	WaitReady(ctx context.Context) error
	WaitForRevision(ctx context.Context, rev engine.Revision) error
}

// Wait blocks until the cache of e has reached rev, for as long as ctx lasts. [engine.Engine.WaitForRevision] gives up
// after the engine's FreshnessTimeout, for which a busy machine may stand still, and which storage that is slow
// to list may need.
//
// Errors: those of [engine.Engine.WaitReady], and of WaitForRevision but for [engine.ErrFuture].
func Wait(ctx context.Context, e Engine, rev engine.Revision) error {
	for {
		if err := e.WaitReady(ctx); err != nil {
			return err
		}
		if err := e.WaitForRevision(ctx, rev); !errors.Is(err, engine.ErrFuture) && !errors.Is(err, engine.ErrNotReady) {
			return err
		}
	}
}
