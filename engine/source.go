package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/watchmill/watchmill/actors/watchcache"
	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/window"
	"github.com/watchmill/watchmill/usercode"
)

// Source lists and watches objects of T, for an informer or an object cache.
// [Engine.Source] and [SourceOf] make one. The zero value is invalid.
type Source[T any] struct{ backend.ListerWatcher }

// SourceOf returns a backend, or another ListerWatcher, as a source of T. Its objects
// must be made by the [store.Schema] of a [Config] of T, as for [Config].Backend. A
// nil from gives an invalid source.
func SourceOf[T any](from backend.ListerWatcher) Source[T] { return Source[T]{from} }

// Type returns T.
func (s Source[T]) Type() reflect.Type { return reflect.TypeFor[T]() }

// Validate returns a [*ConfigError] if the source is missing, or says by a method Type, as
// a Source has, or by its Traits, that its objects are not of T.
func (s Source[T]) Validate() error {
	if s.ListerWatcher == nil {
		return &ConfigError{Field: "Source", Problem: "is missing; give the Source of an engine, or SourceOf a backend"}
	}
	has := typeIn(s.ListerWatcher)
	if from, ok := s.ListerWatcher.(interface{ Type() reflect.Type }); ok {
		has = from.Type()
	}
	if has != nil && has != s.Type() {
		return &ConfigError{Field: "Source", Problem: fmt.Sprintf("holds objects of %v, not of %v; give a source of that type", has, s.Type())}
	}
	return nil
}

// typeIn returns the type of the values that from has, nil if it is not known. A panic of its
// Traits is left to those that rely on them.
func typeIn(from backend.ListerWatcher) (values reflect.Type) {
	_ = usercode.Call("Traits", "", func() { values = from.Traits().Type })
	return values
}

// Source returns the engine as a source, for example for an informer: its lists and
// watches are the cache's, so that any number of clients cost the backend nothing.
//
//	List   ── the newest state from the cache; a past one from the window, else from the backend
//	Watch  ── an ordinary watch, whose consumer is notified and takes the events
//
// A write wakes only the watches that it matches: any number of others, each under a
// key or prefix of its own, cost it nothing. They learn of progress within 100 ms if
// there are up to 1,000 of them, and within a second for up to 10,000.
//
// A watch ends with [ErrExpired] when events for it have, or may have, left the
// window, which is bounded by Config.Window, or when storage went back in time. That
// is noticed, even if storage has come to the same revision again, if it has an
// identity (see [backend.StoreID]), as storage in memory, in a file and in etcd has. When
// storage has ended for good, watches end when they have delivered what there is, and new
// ones fail, with a [*NotReadyError] that is Final. When the engine is closed, everything
// fails with [ErrEngineClosed], which is then also [store.ErrClosed]. A watch whose Notify
// panics ends with a [*usercode.PanicError], which OnError gets too.
//
// Without a cache the source is the backend itself. Then its watches are not among
// [Engine.Watches], [Config].OnEnd is not told of them, and [Engine.Drain] does not wait for its
// clients.
func (e *Engine[T]) Source() Source[T] { return Source[T]{e.core.asSource()} }

func (e *core) asSource() backend.ListerWatcher {
	if !e.cfg.cached() {
		return e.storage.Backend()
	}
	return source{e}
}

// source is an engine as a ListerWatcher.
type source struct{ engine *core }

// Traits: a list may wait for the cache, except in a deterministic run, where nothing
// would run meanwhile. Revisions are not contiguous, since relists produce
// differences. A list says which history it is of.
func (s source) Traits() backend.Traits {
	return backend.Traits{
		Blocks: s.waits() || s.engine.storage.Backend().Traits().Blocks, Identifies: true, Type: s.engine.schema.Type,
	}
}

// waits reports whether calls may wait for the cache: not in a deterministic run.
func (s source) waits() bool { return s.engine.host.run == nil }

// List returns one page.
func (s source) List(ctx context.Context, opts backend.ListOptions) (*backend.List, error) {
	e := s.engine
	if e.alive() != nil {
		return nil, errSourceClosed()
	}
	scan, err := opts.Scan()
	if err != nil {
		return nil, err
	}
	rev, err := s.needed(ctx, scan.Revision)
	if err != nil {
		return nil, err
	}
	snap, err := s.snapshot(ctx, rev)
	switch {
	case err != nil:
		return nil, err
	case snap == nil:
		return s.listStorage(ctx, opts)
	}
	at, state := snap.Revision, snap.State()
	if scan.Revision > 0 {
		at = scan.Revision
		if state, err = snap.StateAt(ctx, at); err != nil {
			return s.listStorage(ctx, opts) // the backend has it, or returns the error
		}
	}
	page := backend.StatePage(scan, at, state)
	page.StoreID = snap.Timeline().String()
	return page, nil
}

// listStorage lists from the backend. It fails with [ErrNotReady] if that has another
// storage by now than the cache, or the cache has got another meanwhile: a watch of the
// cache could not continue the list.
func (s source) listStorage(ctx context.Context, opts backend.ListOptions) (*backend.List, error) {
	cached, err := s.engine.timeline(ctx)
	if err != nil {
		return nil, err
	}
	page, err := s.engine.storage.List(ctx, opts)
	if err != nil {
		return nil, s.engine.translateStorage(err)
	}
	of, err := s.engine.knownStoreID(ctx)
	if err != nil {
		return nil, err
	}
	if now, err := s.engine.timeline(ctx); err != nil || now != cached || now.StoreID != of {
		return nil, cmp.Or(err, otherStorage())
	}
	page.StoreID = cached.String()
	return page, nil
}

// otherStorage returns the error of a list of storage that the cache does not have.
func otherStorage() error {
	return &NotReadyError{RetryAfter: time.Second, Cause: errors.New("storage was replaced by another, which the cache has yet to list")}
}

// StoreID identifies the history that the revisions of lists and watches belong to: it
// changes when storage went back in time, or was replaced by another, and the cache has
// noticed. It is not for saving: [Engine.Checkpoint] is.
func (s source) StoreID(ctx context.Context) (string, error) {
	if s.engine.alive() != nil {
		return "", errSourceClosed()
	}
	if err := context.Cause(ctx); err != nil {
		return "", err
	}
	t, err := s.engine.timeline(ctx)
	return t.String(), err
}

// needed returns the revision that a list must have reached: rev, or for zero the newest.
func (s source) needed(ctx context.Context, rev Revision) (Revision, error) {
	if rev > 0 {
		return rev, nil
	}
	current, err := s.engine.storage.Backend().Revision(ctx)
	return current, s.engine.translateStorage(err)
}

// snapshot returns the cache's state if it is at rev or later, and nil if storage has to list:
// if the cache has not reached rev, or if rev is of another storage than its state, which the
// cache has noticed by now. If it has not noticed, snapshot fails with [ErrNotReady], since a
// watch of the cache could not continue the list.
func (s source) snapshot(ctx context.Context, rev Revision) (*window.Snapshot, error) {
	snap, reached := s.cached(ctx, rev)
	if !reached {
		return nil, nil
	}
	of, err := s.engine.knownStoreID(ctx)
	switch {
	case err != nil:
		return nil, nil // storage itself returns the error
	case of == snap.StoreID:
		return snap, nil
	case of == s.engine.published.Load().StoreID: // the cache has noticed meanwhile
		return nil, nil
	}
	return nil, otherStorage()
}

// cached returns the cache's state, and whether it is at rev or later, waiting for that if
// allowed.
func (s source) cached(ctx context.Context, rev Revision) (_ *window.Snapshot, reached bool) {
	e := s.engine
	ready := e.parts.cache.Ready()
	if snap := e.published.Load(); ready && snap.Revision >= rev {
		return snap, true
	}
	if !s.waits() {
		return nil, false
	}
	snap, err := e.freshSnapshot(ctx, rev)
	return snap, err == nil
}

// errSourceClosed returns the error of a source of a closed engine.
func errSourceClosed() error { return fmt.Errorf("%w: %w", ErrEngineClosed, store.ErrClosed) }

// Watch starts a watch at opts.From. It does not wait, except for the backend if the
// cache has not reached From: Next returns an error of the start. It fails with a
// [*NotReadyError] that is Final if the backend has ended for good.
func (s source) Watch(ctx context.Context, opts backend.WatchOptions) (backend.Watcher, error) {
	e := s.engine
	if e.alive() != nil {
		return nil, errSourceClosed()
	}
	if err := errors.Join(opts.Validate(), context.Cause(ctx)); err != nil {
		return nil, err
	}
	if err := e.parts.cache.Check(e.clockNow()); endedForGood(err) {
		return nil, err // from the call, since a Reflector resumes a watch that ends because storage is closed
	}
	timeline, err := e.timeline(ctx)
	if err != nil {
		return nil, err
	}
	from, err := s.start(ctx, opts)
	if err != nil {
		return nil, err
	}
	if snap := e.published.Load(); snap.Generation > 0 {
		if _, err := snap.Window.Seek(from); err != nil {
			return nil, err
		}
	}
	filter, err := store.NewFilter(nil, store.FilterOptions{Prefix: opts.Prefix})
	if err != nil {
		return nil, err
	}
	options := watcher.Options{Name: usercode.Name{Given: cmp.Or(opts.Name, "source")}}
	w := watcher.NewNotified(&e.feed, options, opts.Notify)
	e.parts.cache.Register(watchcache.Register{Watch: w, Filter: filter, From: watcher.From{Revision: from}, Timeline: &timeline})
	return &sourceWatch{watch: w, of: timeline, through: from}, nil
}

// start returns the revision that a watch starts after, by default the newest. It
// checks with the backend that a revision beyond the cache's is not in the future.
func (s source) start(ctx context.Context, opts backend.WatchOptions) (Revision, error) {
	if opts.From > 0 && opts.From <= s.engine.published.Load().Revision {
		return opts.From, nil
	}
	current, err := s.engine.storage.Backend().Revision(ctx)
	if err != nil {
		return 0, s.engine.translateStorage(err)
	}
	if opts.From == 0 {
		return current, nil
	}
	return opts.From, opts.Check(0, current)
}

// sourceWatch is a watch of a [source].
type sourceWatch struct {
	watch *watcher.Watch
	of    store.Timeline
	// through is the revision up to which everything was returned.
	through Revision
	closed  atomic.Bool
}

// StoreID identifies the history that the watch is of, as that of its [source].
func (w *sourceWatch) StoreID(context.Context) (string, error) { return w.of.String(), nil }

// Next returns the next events. They are shared, not copied.
func (w *sourceWatch) Next(limit int) (backend.Batch, error) {
	batch := backend.Batch{After: w.through, Through: w.through}
	if w.closed.Load() {
		return batch, store.ErrClosed
	}
	events, through, err := w.watch.Take(limit)
	switch {
	case errors.Is(err, watcher.ErrStopped):
		return batch, store.ErrClosed
	case errors.Is(err, ErrEngineClosed):
		return batch, errSourceClosed()
	case err != nil:
		return batch, err
	}
	w.through = max(w.through, through)
	batch.Events, batch.Through = events, w.through
	return batch, nil
}

// Close ends the watch. It waits for a notification that is running.
func (w *sourceWatch) Close() {
	if !w.closed.Swap(true) {
		w.watch.Close()
	}
}
