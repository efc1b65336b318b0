package reads

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

const (
	// askTimeout bounds the question for storage's revision when reads do not reach the
	// one that a client waits for.
	askTimeout = 3 * time.Second
	// behindRetry is the delay after which a client may ask again if the cache is behind.
	behindRetry = time.Second
)

// Over returns e with another WaitForRevision, which asks the storage below for what the cache does not know. uncached says
// that there is no cache.
//
// That WaitForRevision blocks until reads see the revision, for at most the engine's FreshnessTimeout and a few
// seconds; without a cache it asks storage at once. After that the error is [engine.ErrFuture] if storage
// does not have the revision either, and [engine.ErrNotReady] if storage has it or does not answer.
// Storage that has ended for good, or denies the answer, has its own error.
func Over(storage backend.Backend, e Engine, uncached bool) Engine {
	return &asking{e, storage, uncached}
}

// asking is an engine whose WaitForRevision asks storage.
type asking struct {
	Engine
	storage backend.Backend
	// uncached: the engine has no cache, and does not know which revision storage has reached.
	uncached bool
}

func (a *asking) WaitForRevision(ctx context.Context, rev engine.Revision) error {
	err := a.Engine.WaitForRevision(ctx, rev)
	isBehind := errors.Is(err, engine.ErrFuture)
	isUnknown := err == nil && a.uncached && rev > 0
	if !isBehind && !isUnknown {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	newest, err := a.storage.Revision(ctx)
	switch {
	case errors.Is(err, backend.ErrDenied), errors.Is(err, store.ErrClosed): // asking again would not help
		return err
	case err != nil:
		return &engine.NotReadyError{RetryAfter: behindRetry, Cause: fmt.Errorf("revision %d may be there, but storage does not answer: %v", rev, err)}
	case newest < rev:
		return &engine.FutureError{Requested: rev, Current: newest}
	case isBehind:
		return &engine.NotReadyError{RetryAfter: behindRetry, Cause: fmt.Errorf("storage is at revision %d, and the cache is behind", newest)}
	}
	return nil
}
