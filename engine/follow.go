package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
)

// Update is a step of [Follow]: a list, or the changes since the previous update.
type Update[T any] struct {
	// List, if not nil, is all selected objects at Revision: it replaces the
	// consumer's state.
	List *List[T]
	// Events are the changes, in order; none if there is a list. The slice is
	// shared with other watches: read it, do not change it.
	Events []Event[T]
	// Revision is the consumer's after this update: another Follow from it continues
	// there.
	Revision Revision
	// Timeline is the history that Revision belongs to. A consumer that resumes in another process
	// saves both, once it has handled the update, as a [Checkpoint].
	Timeline Timeline
	// Cause is why the previous watch ended, why there is a list, or why opening a
	// watch failed at first; nil if the watch continues.
	Cause error
}

// Follow keeps a consumer up to date until ctx is done, across watches. It lists what
// opts select, unless opts.From is the consumer's revision, and then watches. When a
// watch ends, it resumes, or lists again if the history no longer has the revision:
//
//	          ┌──────────── expired ───────────┐
//	          ▼                                │
//	start ─▶ list ─▶ Update.List ─▶ watch ─▶ Update.Events …
//	                                  ▲        │
//	                                  └─ ended ┘ Terminate, a failure of the engine
//
// Storage that was restored or replaced is another [Timeline]: the consumer then gets
// a list, even if the storage has come to the same revision or a greater one.
//
// While the engine is not ready it retries, with growing pauses of up to a second. It does the
// same while watches end at once and deliver no events, as without a cache while storage fails.
// Without a cache, [Config].OnError gets each error after which it retries.
//
// The last pair of a loop has the error that ends it: ctx's cause; [ErrEngineClosed];
// [ErrNotReady] if the backend has ended for good (without a cache: [store.ErrClosed]); or an
// error of opts. Breaking out of the loop ends the watch and loses nothing:
// ranging again continues after the last update. An iterator is for one goroutine at a time.
//
// opts.InitialState and opts.Last are refused with [ErrInvalidWatch]. opts.Timeout
// applies to each watch.
func Follow[T any](ctx context.Context, e *Engine[T], opts WatchOptions) iter.Seq2[Update[T], error] {
	f := &following{engine: e.core, opts: opts.madeByCaller()}
	return func(yield func(Update[T], error) bool) {
		defer f.leave()
		for {
			up, err := f.next(ctx)
			if err != nil {
				yield(Update[T]{}, err)
				return
			}
			if !yield(Update[T]{typedList[T](up.list), store.AsEvents[Event[T]](up.events), up.revision, up.timeline, up.cause}, nil) {
				return
			}
		}
	}
}

// Resume starts a watch after opts.From. If the history no longer has From, or From is
// zero, it lists what opts select instead, calls reset with the list, which replaces
// the consumer's state, and starts the watch from the list's revision. The list is not
// older than From, unless storage went back. [Follow] does this whenever a watch has
// ended.
//
// reset is called before the watch starts, and again with another list if the list has expired by
// then; if it expires again and again, with growing pauses of up to a second. So reset must take less
// time than the window spans while objects change. Where it may take longer, as one that fills a
// database does, use [Follow], which opens the watch first.
// If handle is nil the watch is like that of [Engine.Watch], otherwise like that of
// [Engine.Handle].
//
// Errors: as for [Engine.Watch] and [Engine.List], except [ErrExpired]; [ErrConfig] if reset
// is nil.
func Resume[T any](ctx context.Context, e *Engine[T], opts WatchOptions, reset func(*List[T]), handle func(Event[T])) (*Watch[T], error) {
	if reset == nil { // which would be found when history has expired, or never
		return nil, &ConfigError{Field: "reset", Problem: "is nil; give a function that replaces the consumer's state by the list"}
	}
	var untyped func(*watcher.Delivery)
	if handle != nil {
		untyped = eachEvent(handle)
	}
	return typedWatch[T](resume(ctx, e.core, opts.madeByCaller(), nil, func(l *listed, _ error) { reset(typedList[T](l)) }, untyped))
}

// resume is the untyped Resume. reset also gets the reason for the list, nil if the
// consumer has no state. A non-nil why forces a list: the consumer's state is invalid
// even if history seems to have its revision.
func resume(ctx context.Context, e engineCore, opts WatchOptions, why error, reset func(l *listed, why error), handle func(*watcher.Delivery)) (watchCore, error) {
	if opts.InitialState || opts.Last != 0 {
		return nil, fmt.Errorf("%w: InitialState or Last is set, but a consumer that resumes starts with a list; leave them out", ErrInvalidWatch)
	}
	list := why != nil || opts.From == 0
	for expired := 0; ; expired++ {
		if err := wait(ctx, e, pauseAfter(expired)); err != nil {
			return nil, err
		}
		if list {
			l, err := relist(ctx, e, opts)
			if err != nil {
				return nil, err
			}
			reset(l, why)
			opts.From, opts.Timeline = l.Revision, l.timeline
		}
		var w watchCore
		if why = waitForFrom(ctx, e, opts); why == nil {
			w, why = e.startWatch(ctx, opts, handle)
		}
		if !errors.Is(why, ErrExpired) && !errors.Is(why, ErrFuture) {
			return w, why
		}
		list = true
	}
}

// waitForFrom waits until the cache has reached the consumer's revision, since a watch from
// it would wait forever if storage has gone back in time. It does not wait for a revision
// of another timeline. Without a cache it asks storage, and does not wait.
func waitForFrom(ctx context.Context, e engineCore, opts WatchOptions) error {
	if opts.From <= e.newest() {
		return nil
	}
	if opts.Timeline.known {
		now, err := e.timelineNow(ctx)
		if err == nil && now != opts.Timeline {
			err = &ExpiredError{Requested: opts.From, Oldest: e.newest()}
		}
		if err != nil {
			return err
		}
	}
	return e.ensureReached(ctx, opts.From)
}

// relist lists what opts select, not older than opts.From. If the cache does not reach
// that, storage may have gone back in time: then it lists the newest state.
func relist(ctx context.Context, e engineCore, opts WatchOptions) (*listed, error) {
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

// following is Follow's state between updates.
type following struct {
	engine engineCore
	opts   WatchOptions // From is the consumer's revision
	watch  watchCore    // nil while there is none
	list   *listed
	// expired is why the consumer's state is invalid, nil if it is valid. cause is
	// why the previous watch ended, or could not be opened, for the next update.
	expired, cause error
	// opened is when the watch was opened. fruitless counts the watches in a row that have
	// ended soon after that and delivered nothing.
	opened    time.Time
	fruitless int
}

// update is the untyped [Update].
type update struct {
	list     *listed
	events   []store.Event
	revision Revision
	timeline Timeline
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
			f.fruitless = 0
			return f.tell(update{events: events, revision: f.watch.Revision()}), nil
		}
		if err := f.ended(ctx, err); err != nil {
			return update{}, err
		}
	}
}

// tell returns the update with its timeline and its cause.
func (f *following) tell(up update) update {
	up.timeline, up.cause = f.opts.Timeline, f.cause
	f.cause, f.list = nil, nil
	return up
}

// ended records why the watch has ended, or returns the error if it is final. It pauses if
// watches end at once, other than by their timeout.
func (f *following) ended(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case f.watch.Err() == nil, errors.Is(err, ErrEngineClosed):
		return err
	}
	f.leave()
	f.cause = err
	if errors.Is(err, ErrExpired) {
		f.expired = err
	}
	if f.fruitless++; errors.Is(err, ErrDeadline) || f.now().Sub(f.opened) >= longestPause {
		f.fruitless = 0
	}
	return wait(ctx, f.engine, pauseAfter(f.fruitless))
}

// leave ends the watch, if there is one, and keeps the consumer's revision.
func (f *following) leave() {
	if f.watch == nil {
		return
	}
	f.opts.From = f.watch.Revision()
	f.watch.Stop()
	f.watch = nil
}

// open opens a watch at the consumer's revision, and retries while that may help.
func (f *following) open(ctx context.Context) (err error) {
	reset := func(l *listed, why error) {
		f.list, f.expired, f.opts.From, f.opts.Timeline = l, nil, l.Revision, l.timeline
		if f.cause == nil {
			f.cause = why
		}
	}
	for failures := 1; ; failures++ {
		if err = f.remember(ctx); err == nil {
			f.watch, err = resume(ctx, f.engine, f.opts, f.expired, reset, nil)
		}
		switch {
		case err == nil:
			f.opened = f.now()
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case isFinal(err):
			return err
		}
		f.cause = err
		f.engine.reportUncached(err)
		if err := wait(ctx, f.engine, pauseAfter(failures+1)); err != nil { // after the first one, too
			return err
		}
	}
}

// remember notes which history the consumer's revision is of, if it came without: the
// watches to come continue that one or expire.
func (f *following) remember(ctx context.Context) (err error) {
	if f.opts.From > 0 && !f.opts.Timeline.known {
		f.opts.Timeline, err = f.engine.timelineNow(ctx)
	}
	return err
}

// isFinal reports whether retrying to open a watch is useless.
func isFinal(err error) bool {
	for _, final := range []error{ErrEngineClosed, ErrInvalidWatch, ErrInvalidSelector, ErrInvalidKey, ErrUnsupported, ErrIdle, store.ErrClosed} {
		if errors.Is(err, final) {
			return true
		}
	}
	return endedForGood(err)
}

// now returns the time of the host.
func (f *following) now() time.Time { return coreOf(f.engine.hostOf()).clock().Now() }
