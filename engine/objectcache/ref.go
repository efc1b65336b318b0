package objectcache

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
)

// Ref is a reference to the object under one key. While there is one, the cache keeps the
// object. Its methods are safe for concurrent use.
type Ref[T any] struct{ core refCore }

// refCore is what the typed façade calls: a [reference]; see [cacheCore].
type refCore interface {
	key() string
	get(ctx context.Context) (*store.Object, error)
	getNotOlderThan(ctx context.Context, rev store.Revision) (*store.Object, error)
	changed() <-chan struct{}
	release()
}

// Key returns the object's key.
func (r *Ref[T]) Key() string { return r.core.key() }

// Get returns the newest state of the object that has arrived. It is shared and
// must not be changed.
//
// An object that is being followed, or is immutable, is returned at once, without a lock or
// an allocation, even if ctx is done; while the source cannot be reached, it is the last
// known state. Otherwise Get waits until the object has arrived: for the first time, or
// again after it was idle for [Config].MaxIdle. If lists of the source may lag, the state
// that arrives then may be older than one that Get has returned; GetNotOlderThan waits for a
// revision.
//
// Errors: [ErrNotFound] if there is no such object; [ErrNotSynced] if ctx ended
// first, or the source cannot be followed any more (the next Get tries again):
// a [*NotSyncedError] with ctx's cause and the source's last error;
// [ErrReleased]; [ErrClosed].
func (r *Ref[T]) Get(ctx context.Context) (*engine.Object[T], error) {
	object, err := r.core.get(ctx)
	return typed[T](object), err
}

// GetNotOlderThan is Get that waits until the cache has everything up to revision rev,
// as of a write, so that a program reads what it has written. An immutable object is
// returned at once.
//
// Errors: as for Get. If rev does not come, it is [ErrNotSynced] with ctx's cause, and with the
// source's last error if the source is not being followed.
func (r *Ref[T]) GetNotOlderThan(ctx context.Context, rev store.Revision) (*engine.Object[T], error) {
	object, err := r.core.getNotOlderThan(ctx, rev)
	return typed[T](object), err
}

// Changed returns a channel that is closed when what Get returns has changed since the
// call: there is a newer state, the object is deleted, or it has arrived. Ask for the
// channel, then Get, then wait:
//
//	for {
//		changed := ref.Changed()
//		object, err := ref.Get(ctx)
//		…
//		<-changed
//	}
//
// It is closed, too, when the cache has stopped following the object, since it is idle
// or its source has ended (the next Get follows it again), and when a reference to the
// object is released or the cache is closed. Changes that come before the channel is
// asked for again are one. It costs no goroutine.
func (r *Ref[T]) Changed() <-chan struct{} { return r.core.changed() }

// Release ends the reference: it cannot be used any more, and a Get that waits on it
// ends. After the last reference to a key the cache stops following the object and
// forgets it. Releasing again does nothing. It never blocks.
func (r *Ref[T]) Release() { r.core.release() }

// reference is the untyped [Ref].
type reference struct {
	cache    *cache
	entry    *entry
	released atomic.Bool
}

func (r *reference) key() string { return r.entry.key }

func (r *reference) get(ctx context.Context) (*store.Object, error) {
	if r.released.Load() {
		return nil, r.errReleased()
	}
	r.entry.touch(r.cache.now())
	if v := r.entry.view.Load(); v.served() {
		return v.object, v.err
	}
	return r.wait(ctx)
}

func (r *reference) getNotOlderThan(ctx context.Context, rev store.Revision) (*store.Object, error) {
	for {
		if _, err := r.get(ctx); err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
		v, reached, advanced := r.entry.progress()
		switch {
		case !v.served(), r.released.Load(): // meanwhile; get knows why
			continue
		case reached >= rev, v.phase == frozen, revisionOf(v.object) >= rev:
			return v.object, v.err
		}
		if err := r.awaitProgress(ctx, advanced); err != nil {
			return nil, &NotSyncedError{Key: r.entry.key, Cause: err, Source: r.entry.sourceErr()}
		}
	}
}

// awaitProgress asks the source for progress, and waits until there is some.
func (r *reference) awaitProgress(ctx context.Context, advanced <-chan struct{}) error {
	r.entry.behind.Add(1)
	defer r.entry.behind.Add(-1)
	if source := r.entry.child.Load(); source != nil {
		source.RequestProgress()
	}
	return r.cache.host.Await(ctx, advanced)
}

func (r *reference) changed() <-chan struct{} {
	changed := r.entry.nextChange()
	if r.released.Load() || r.entry.view.Load().phase == closed {
		closed := make(chan struct{})
		close(closed)
		return closed
	}
	return changed
}

// wait starts to follow the object if necessary, and waits for it.
func (r *reference) wait(ctx context.Context) (*store.Object, error) {
	r.entry.waiting.Add(1)
	defer r.entry.waiting.Add(-1)
	if r.entry.want() {
		r.cache.recheck(r.entry)
	}
	for {
		v := r.entry.view.Load()
		switch {
		case r.released.Load():
			return nil, r.errReleased()
		case v.served():
			return v.object, v.err
		case v.phase == closed:
			return nil, v.err
		case v.phase == lost:
			return nil, &NotSyncedError{Key: r.entry.key, Source: v.err}
		case v.phase == stopped && ctx.Err() == nil: // it was idle meanwhile, or not referenced
			if r.entry.want() {
				r.cache.recheck(r.entry)
			}
			continue
		}
		if err := r.cache.host.Await(ctx, v.change); err != nil {
			return nil, &NotSyncedError{Key: r.entry.key, Cause: err, Source: r.entry.view.Load().err}
		}
	}
}

// errReleased returns the error of a released reference.
func (r *reference) errReleased() error { return about(r.entry.key, ErrReleased) }

func (r *reference) release() {
	if r.released.Swap(true) {
		return
	}
	if r.entry.release() {
		r.cache.recheck(r.entry)
	}
}
