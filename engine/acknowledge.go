package engine

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/watchmill/watchmill/store"
)

// acknowledged is the newest revision that a write has returned. Storage that goes back in
// time loses such writes, so from then on what was acknowledged before does not count.
type acknowledged struct {
	revision atomic.Uint64
	// doubts counts how often storage may have gone back.
	doubts atomic.Uint64
}

// doubt forgets all writes, and those in progress.
func (a *acknowledged) doubt() {
	a.doubts.Add(1)
	a.revision.Store(0)
}

// record records the revision of a write that began when there were that many doubts, unless there have
// been others since: then storage may have lost it, and newer ones count. A doubt that comes after its
// check forgets the revision by itself.
func (a *acknowledged) record(rev Revision, doubts uint64) {
	for {
		newest := a.revision.Load()
		if newest >= uint64(rev) || a.doubts.Load() != doubts {
			return
		}
		if a.revision.CompareAndSwap(newest, uint64(rev)) {
			break
		}
	}
	if a.doubts.Load() != doubts {
		a.revision.Store(0)
	}
}

// writing is a write in progress, with the context of the call.
type writing struct {
	engine *core
	ctx    context.Context
	doubts uint64
}

// beginWrite comes before the call of storage.
func (e *core) beginWrite(ctx context.Context) writing {
	return writing{e, ctx, e.acknowledged.doubts.Load()}
}

// acknowledge records the revision of a write before it is returned, if there is a cache,
// which would notice storage that lost the write and went back in time.
func (w writing) acknowledge(o *store.Object, err error) (*store.Object, error) {
	e := w.engine
	if err != nil {
		w.noteEnd(err)
		return o, e.translate(err)
	}
	if d := e.draining.Load(); d != nil {
		return d.admit(o)
	}
	if e.parts.cache != nil && e.parts.cache.Ready() {
		e.acknowledged.record(o.Revision, w.doubts)
	}
	return o, nil
}

// noteEnd has it noted if storage is closed, as the error of a write may say. It asks storage, since the caller's
// function may have returned the error.
func (w writing) noteEnd(err error) {
	if errors.Is(err, store.ErrClosed) && w.engine.parts.cache == nil {
		_ = w.engine.storageReached(w.ctx, 0)
	}
}
