package engine

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/window"
)

// ErrInvalidList: list options contradict each other.
var ErrInvalidList = errors.New("invalid list options")

// ListOptions says what to list. The zero value lists everything, linearizably.
type ListOptions struct {
	// Key lists at most one object. Prefix lists the keys under a path; not
	// both.
	Key, Prefix string
	// Start is the first key to list: a key, or the beginning of one as in Prefix. Empty
	// means the first of all. It may be given with Continue, and not with Key.
	Start string
	// Labels and Fields are selectors. The first that requires an indexed field or
	// label to have a value is looked up by index.
	Labels, Fields string
	// LabelSelector and FieldSelector are selectors that were parsed before, in
	// place of Labels and Fields or in addition to them. One that selects nothing
	// selects nothing.
	LabelSelector labels.Selector
	FieldSelector fields.Selector
	// Limit is the most objects of a page; zero means all. With [Cached] it is
	// ignored, if there is a cache: the whole list costs no more.
	Limit int
	// Continue requests the next page; see [List]. The state is that of the first
	// page, so Read must be left out. The page may come from the cache or from the
	// backend, independent of the previous one, and from another engine on the same
	// storage, but only from the same [Timeline].
	Continue string
	// Read says how fresh the list must be; zero means [Latest].
	Read Read
}

// List returns objects in key order, from the cache if possible. From the cache it
// takes no lock and delays no writer.
//
//	Read              served by the cache                       by the backend
//	Latest            once it has the backend's newest          if it does not get there in time
//	Cached            at once                                   -
//	NotOlderThan(r)   at once, or once it has reached r         -
//	Exactly(r)        if its window reaches back to r, or       otherwise
//	                  once it has reached r
//	Continue          as Exactly, but without waiting           otherwise
//
// While the cache is not ready (see [ErrNotReady]) it serves what it can without
// waiting. Otherwise the backend serves pages without selectors, which are cheap,
// and other lists wait for the cache.
//
// Errors: [ErrInvalidList], [ErrInvalidRead], [ErrInvalidSelector],
// [ErrInvalidKey], [ErrInvalidContinue], [ErrExpired] if the revision is no
// longer kept, or if storage is on another [Timeline] than at the previous page
// (as a [*backend.ExpiredContinueError] if the pages can go on in the newest state),
// [ErrFuture] if it is not reached within [Config].FreshnessTimeout, [ErrNotReady],
// [ErrEngineClosed], ctx's cause, or the backend's error.
func (e *Engine[T]) List(ctx context.Context, opts ListOptions) (*List[T], error) {
	page, err := e.core.list(ctx, opts)
	return typedList[T](page), err
}

// listed is a page with its timeline. Its Remaining may be -1, as [List].Remaining says.
type listed struct {
	backend.List
	timeline Timeline
	// more: there are pages after this one.
	more bool
}

func typedList[T any](l *listed) *List[T] {
	if l == nil {
		return nil
	}
	return &List[T]{l.Revision, store.AsObjects[Object[T]](l.Items), l.Continue, l.Remaining, l.timeline}
}

// list is the untyped List.
func (e *core) list(ctx context.Context, opts ListOptions) (*listed, error) {
	if err := e.alive(); err != nil {
		return nil, err
	}
	q, err := newQuery(&e.cfg, opts)
	if err != nil {
		return nil, err
	}
	if !e.cfg.cached() {
		return e.listBackend(ctx, q)
	}
	e.counts.lists.Add(1)
	if e.delegates(q) {
		return e.fallBack(ctx, q)
	}
	page, err := e.listCache(ctx, q)
	fellBack := err != nil && backendMayKnow(q, err)
	if fellBack {
		page, err = e.fallBack(ctx, q)
	}
	if q.read.mode == latest {
		e.counts.consistent.add(err == nil, fellBack)
	}
	return page, err
}

// listCache lists from the cache.
func (e *core) listCache(ctx context.Context, q query) (*listed, error) {
	snap, err := e.snapshotFor(ctx, q)
	if err != nil {
		return nil, err
	}
	if !e.continuesOn(q, snap.Timeline()) {
		return nil, &ExpiredError{Requested: q.read.revision}
	}
	return e.listSnapshot(snap, q), nil
}

// fallBack lists from the backend, since the cache cannot serve the list.
func (e *core) fallBack(ctx context.Context, q query) (*listed, error) {
	e.counts.fallbacks.Add(1)
	return e.listBackend(ctx, q)
}

// delegates reports whether to read from the backend rather than wait until the cache
// is ready.
func (e *core) delegates(q query) bool {
	if !q.cheap() || !errors.Is(e.parts.cache.Check(e.clockNow()), ErrNotReady) {
		return false
	}
	snap := e.published.Load()
	return q.read.mode == latest || snap.Generation == 0 || snap.Revision < q.read.revision
}

// snapshotFor returns the cache's state with the query's freshness.
func (e *core) snapshotFor(ctx context.Context, q query) (*window.Snapshot, error) {
	switch q.read.mode {
	case exactly:
		return e.stateAt(ctx, q.read.revision, !q.continued)
	case latest:
		return e.latest(ctx)
	}
	return e.reached(ctx, q.read.revision)
}

// backendMayKnow reports whether the backend may have a state that the cache does not:
// one that the window no longer has, or that the cache does not reach in time.
func backendMayKnow(q query, err error) bool {
	switch q.read.mode {
	case exactly:
		return errors.Is(err, ErrExpired) || errors.Is(err, ErrFuture)
	case latest:
		return errors.Is(err, ErrFuture)
	}
	return false
}
