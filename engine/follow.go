package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// Update is a step of [Follow]: a list, or what happened since the update before.
type Update[T any] struct {
	// List, if not nil, is all that is selected, at Revision: it replaces what the
	// consumer has.
	List *List[T]
	// Events are what happened, in order; none if there is a list. The slice is
	// shared with other watches: read it, do not change it.
	Events []Event[T]
	// Revision is where the consumer stands with this update: another Follow from
	// there would go on behind it.
	Revision Revision
	// Cause is why the watch that brought the update before has ended, why there is
	// a list, or why there was none at first; nil if all goes on.
	Cause error
}

// Follow keeps a consumer up to date for as long as ctx lasts, whatever becomes of
// its watches. It lists what opts select, unless opts.From says what the consumer
// has, and then watches. When a watch ends it goes on where that stood, or lists
// again if history does not reach back so far:
//
//	          ┌──────────── expired ───────────┐
//	          ▼                                │
//	start ─▶ list ─▶ Update.List ─▶ watch ─▶ Update.Events …
//	                                  ▲        │
//	                                  └─ ended ┘ Terminate, a failure of the engine
//
// While the engine is not ready it tries again, with growing pauses of up to a
// second.
//
// The last pair of a loop has the error that ends it: ctx's cause,
// [ErrEngineClosed], or what is wrong with opts. Breaking out of the loop ends the
// watch; ranging again goes on behind the last update. An iterator belongs to one
// goroutine at a time.
//
// Of opts, InitialState and Last mean nothing here and are refused with
// [ErrInvalidWatch]. A Timeout is that of each watch.
func Follow[T any](ctx context.Context, e *Engine[T], opts WatchOptions) iter.Seq2[Update[T], error] {
	f := &following{engine: e.core, opts: opts.madeAt(0)}
	return func(yield func(Update[T], error) bool) {
		defer f.leave()
		for {
			up, err := f.next(ctx)
			if err != nil {
				yield(Update[T]{}, err)
				return
			}
			if !yield(Update[T]{typedList[T](up.list), store.AsEvents[Event[T]](up.events), up.revision, up.cause}, nil) {
				return
			}
		}
	}
}

// Resume starts a watch after opts.From. If history does not reach back so far, or
// From is zero, it lists what opts select instead, calls reset with the list, which
// replaces what the consumer has, and starts the watch from the list's revision.
// The list is not older than From, unless storage itself has become so. [Follow]
// does this whenever a watch has ended.
//
// Reset is called before the watch starts; if the list has expired by then, once
// more. If handle is nil the watch is pulled, as one of [Engine.Watch], otherwise
// it calls handle, as one of [Engine.Handle].
//
// Errors: as for [Engine.Watch] and [Engine.List], but for [ErrExpired].
func Resume[T any](ctx context.Context, e *Engine[T], opts WatchOptions, reset func(*List[T]), handle func(Event[T])) (*Watch[T], error) {
	var untyped func(*watcher.Delivery)
	if handle != nil {
		untyped = eachEvent(handle)
	}
	return typedWatch[T](resume(ctx, e.core, opts.madeAt(0), nil, func(l *backend.List, _ error) { reset(typedList[T](l)) }, untyped))
}

func typedList[T any](l *backend.List) *List[T] {
	if l == nil {
		return nil
	}
	return &List[T]{l.Revision, store.AsObjects[Object[T]](l.Items), l.Continue, l.Remaining}
}

// resume is Resume without the type. Reset is also told why there is a list, nil if
// the consumer has nothing. A why to begin with says that what the consumer has is
// void even if history seems to reach back to it.
func resume(ctx context.Context, e engineCore, opts WatchOptions, why error, reset func(l *backend.List, why error), handle func(*watcher.Delivery)) (watchCore, error) {
	if opts.InitialState || opts.Last != 0 {
		return nil, fmt.Errorf("%w: InitialState or Last is set, but a consumer that resumes starts with a list; leave them out", ErrInvalidWatch)
	}
	for list := why != nil || opts.From == 0; ; list = true {
		if list {
			l, err := relist(ctx, e, opts)
			if err != nil {
				return nil, err
			}
			reset(l, why)
			opts.From = l.Revision
		}
		var w watchCore
		if why = reach(ctx, e, opts.From); why == nil {
			w, why = e.startWatch(ctx, opts, handle)
		}
		if !errors.Is(why, ErrExpired) && !errors.Is(why, ErrFuture) {
			return w, why
		}
	}
}

// reach waits until the cache has come to where the consumer stands: a watch from
// there would wait for ever if storage has gone back in time.
func reach(ctx context.Context, e engineCore, from Revision) error {
	if from <= e.newest() {
		return nil
	}
	return e.waitFor(ctx, from)
}

// relist lists what opts select, not older than opts.From. If the cache is behind
// that, it lags, or storage has gone back in time: then the newest is what counts,
// as it does for a consumer that has nothing.
func relist(ctx context.Context, e engineCore, opts WatchOptions) (*backend.List, error) {
	what := ListOptions{
		Key: opts.Key, Prefix: opts.Prefix, Labels: opts.Labels, Fields: opts.Fields,
		LabelSelector: opts.LabelSelector, FieldSelector: opts.FieldSelector,
		Read: NotOlderThan(opts.From),
	}
	if opts.Linearizable || opts.From == 0 || opts.From > e.newest() {
		what.Read = Latest()
	}
	return e.list(ctx, what)
}

// following is what Follow remembers from one update to the next.
type following struct {
	engine engineCore
	opts   WatchOptions // From is where the consumer stands
	watch  watchCore    // nil while there is none
	list   *backend.List
	// expired is why what the consumer has is void, nil if it is not. cause is why
	// the watch before has ended, or could not be opened, until an update has told.
	expired, cause error
}

// update is an [Update] without the type.
type update struct {
	list     *backend.List
	events   []store.Event
	revision Revision
	cause    error
}

// next returns the next update, or the error that ends the loop.
func (f *following) next(ctx context.Context) (update, error) {
	for {
		if f.watch == nil {
			if err := f.open(ctx); err != nil {
				return update{}, err
			}
		}
		if f.list != nil {
			return f.tell(update{list: f.list, revision: f.list.Revision}), nil
		}
		events, err := f.watch.Next(ctx)
		if err == nil {
			return f.tell(update{events: events, revision: f.watch.Revision()}), nil
		}
		if err := f.ended(ctx, err); err != nil {
			return update{}, err
		}
	}
}

// tell returns the update with what has led to it.
func (f *following) tell(up update) update {
	up.cause = f.cause
	f.cause, f.list = nil, nil
	return up
}

// ended notes why the watch has ended, or returns the error if there is no going
// on.
func (f *following) ended(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case f.watch.Err() == nil, errors.Is(err, ErrEngineClosed):
		return err
	}
	f.leave()
	if f.cause = err; errors.Is(err, ErrExpired) {
		f.expired = err
	}
	return nil
}

// leave ends the watch, if there is one, and notes where the consumer stands.
func (f *following) leave() {
	if f.watch == nil {
		return
	}
	f.opts.From = max(f.opts.From, f.watch.Revision())
	f.watch.Stop()
	f.watch = nil
}

// The pauses between two attempts to open a watch.
const (
	firstPause   = 10 * time.Millisecond
	longestPause = time.Second
)

// open opens a watch where the consumer stands, and tries again for as long as
// that may help.
func (f *following) open(ctx context.Context) (err error) {
	reset := func(l *backend.List, why error) {
		f.list, f.expired, f.opts.From = l, nil, l.Revision
		if f.cause == nil {
			f.cause = why
		}
	}
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		f.watch, err = resume(ctx, f.engine, f.opts, f.expired, reset, nil)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case isFinal(err):
			return err
		}
		f.cause = err
		if err := f.wait(ctx, pause); err != nil {
			return err
		}
	}
}

// isFinal reports whether another attempt to open a watch would fail likewise.
func isFinal(err error) bool {
	for _, final := range []error{ErrEngineClosed, ErrInvalidWatch, ErrInvalidSelector, ErrInvalidKey, ErrIdle} {
		if errors.Is(err, final) {
			return true
		}
	}
	return false
}

// wait waits, by the host's clock.
func (f *following) wait(ctx context.Context, d time.Duration) error {
	h := coreOf(f.engine.hostOf())
	passed := make(chan struct{})
	timer := h.system.Clock().AfterFunc(d, func() { close(passed) })
	defer timer.Stop()
	return h.await(ctx, passed)
}
