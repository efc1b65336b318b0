package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/dispatcher"
	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/tree"
	"github.com/watchmill/watchmill/store/window"
	"github.com/watchmill/watchmill/usercode"
)

// uncachedBatch is how many events a watch without cache takes from the backend
// at once, or as many as its buffer has room for if that is less.
const uncachedBatch = 256

// maxUncached is the largest buffer that the window of such a watch has room for. A watch with a larger
// one keeps itself what leaves the window.
const maxUncached = math.MaxInt32 / 4

// uncachedWatch is the actor behind a watch when there is no cache: it reads the
// backend's watch into a small window, for a dispatcher with only this watch, as far
// as the consumer keeps up. The rest stays with the backend.
//
//	backend.Watcher ──Next, while the consumer keeps up──▶ window ──▶ dispatcher ──▶ Watch
type uncachedWatch struct {
	engine   *core
	watch    *watcher.Watch
	filter   *store.Filter
	start    watcher.Start
	deadline watcher.Deadline
	reply    chan<- error

	source    backend.Watcher
	buffer    int
	window    *window.Window
	published window.Published
	feed      watcher.Feed

	dispatcher atomic.Pointer[actors.Ref[dispatcher.Message]]
	self       atomic.Pointer[actors.Ref[pull]]
	// broken: the backend's watch has ended, or is not needed any more.
	broken bool
	// failures is how often the dispatcher has failed.
	failures int
	// final is the last revision that is to be delivered, once the engine is being
	// drained; zero before.
	final atomic.Uint64
}

// pull makes the actor read from the backend, since that has something, or there may be
// room for more.
type pull struct{}

// startUncached asks the root to start a watch. Its reply receives nil once the watch
// is registered.
type startUncached struct{ watch *uncachedWatch }

// watchUncached starts a watch on the backend itself.
func (e *core) watchUncached(ctx context.Context, opts *WatchOptions, filter *store.Filter, to consumer) (watchCore, error) {
	if opts.Last > 0 || opts.Policy == Conflate {
		return nil, fmt.Errorf("%w: WatchOptions.Last and Conflate need the cache, which Config.NoCache turns off", ErrUnsupported)
	}
	reply := make(chan error, 1)
	u := &uncachedWatch{engine: e, filter: filter, deadline: e.deadline(ctx, opts), reply: reply}
	e.supply(&u.feed)
	u.feed.Drain = u.drain
	u.feed.Newest = u.published.Load
	u.feed.Recovered = func(w *watcher.Member) { u.tell(dispatcher.Recovered{Watch: w}) }
	u.feed.Ended = func(w *watcher.Member) { u.tell(dispatcher.Ended{Watch: w}) }
	u.watch = newWatch(&u.feed, opts, to)
	if err := u.open(ctx, opts); err != nil {
		u.watch.Stop()
		return nil, e.translateStorage(err)
	}
	return e.start(ctx, u.watch, reply, opts.Detached, func() {
		if !e.root.Tell(startUncached{u}) {
			u.refuse()
		}
	})
}

// maxStarts is how often a watch asks the backend where to start, if the backend keeps so little
// history that its watch from there has expired already.
const maxStarts = 5

// open decides where the watch starts and starts the backend's watch there. It decides again if the
// backend discards that position meanwhile, unless the caller has named it.
func (u *uncachedWatch) open(ctx context.Context, opts *WatchOptions) error {
	u.buffer = cmp.Or(opts.Buffer, watcher.DefaultBuffer)
	u.window = window.New(window.Limits{
		MinAge: math.MaxInt64, MaxBytes: math.MaxInt64, MaxEvents: 2 * (min(u.buffer, maxUncached) + uncachedBatch),
	}, u.engine.sizeOf)
	for starts := 1; ; starts++ {
		from, err := u.decideStart(ctx, opts)
		if err != nil {
			return err
		}
		u.source, err = u.engine.storage.Backend().Watch(ctx, backend.WatchOptions{
			Prefix: u.prefix(), From: from, Notify: u.pullSoon,
		})
		named := from == opts.From && !opts.InitialState
		switch {
		case err == nil:
			return u.ofTimeline(ctx, opts)
		case named || starts == maxStarts || !errors.Is(err, store.ErrExpired):
			return err
		}
	}
}

// decideStart sets where the watch starts, and returns the revision from which the backend's watch
// must be.
func (u *uncachedWatch) decideStart(ctx context.Context, opts *WatchOptions) (Revision, error) {
	current, err := u.engine.storage.Backend().Revision(ctx)
	if err != nil {
		return 0, err
	}
	from := cmp.Or(opts.From, current)
	u.start = watcher.Start{}
	switch {
	case opts.InitialState:
		if from, err = u.list(ctx, opts); err != nil {
			return 0, err
		}
	case from > current:
		u.start.Pending, from = from, current
	}
	u.start.After = from
	u.window.Reset(from)
	u.publish()
	return from, nil
}

// ofTimeline closes the backend's watch, and returns the error, if it is not of opts.Timeline.
func (u *uncachedWatch) ofTimeline(ctx context.Context, opts *WatchOptions) error {
	err := u.engine.continues(ctx, opts)
	if err != nil {
		u.source.Close()
	}
	return err
}

// prefix is what the backend's list and watch cover: no less than the filter.
func (u *uncachedWatch) prefix() string { return cmp.Or(u.filter.Key(), u.filter.Prefix()) }

// list reads the initial state, and returns its revision. It sets opts.Timeline, since the
// changes must be of the same storage.
func (u *uncachedWatch) list(ctx context.Context, opts *WatchOptions) (_ Revision, err error) {
	if opts.Timeline.known {
		err = u.engine.continues(ctx, opts)
	} else {
		opts.Timeline, err = u.engine.timelineNow(ctx)
	}
	if err != nil {
		return 0, err
	}
	page, err := u.engine.storage.List(ctx, backend.ListOptions{Prefix: u.prefix()})
	if err != nil {
		return 0, err
	}
	if page.Revision < opts.From {
		return 0, &FutureError{Requested: opts.From, Current: page.Revision}
	}
	state := tree.New()
	for _, o := range page.Items {
		state.Put(o)
	}
	u.start.State, u.start.InitialEnd = state.View(), opts.Bookmarks
	return page.Revision, nil
}

// refuse ends a watch that was started after the engine's stop.
func (u *uncachedWatch) refuse() {
	u.source.Close()
	u.reply <- ErrEngineClosed
}

// spawn starts the actor.
func (u *uncachedWatch) spawn(ctx *actors.Context) {
	ref := actors.Spawn(ctx, "watch", func() actors.Behavior[pull] { return u }, actors.Options{})
	if !ref.Alive() {
		u.refuse()
		return
	}
	u.self.Store(ref)
	u.pullSoon()
}

func (u *uncachedWatch) pullSoon() {
	if self := u.self.Load(); self != nil {
		self.Tell(pull{})
	}
}

// Started starts the dispatcher and registers the watch.
func (u *uncachedWatch) Started(ctx *actors.Context) {
	e := u.engine
	d := dispatcher.Spawn(ctx, e.observed(dispatcher.Config{
		Schema: e.schema, Source: &u.published, Feed: &u.feed, BookmarkPeriod: e.cfg.bookmarkPeriod,
		Rand: e.host.newRand(), Stats: &e.counts.dispatcher, OnTurn: u.pullSoon,
	}))
	u.dispatcher.Store(d)
	d.Tell(dispatcher.Committed{})
	accepted := d.Tell(dispatcher.Register{
		Watch: u.watch.Member(), Filter: u.filter, Start: u.start, Deadline: u.deadline, Snapshot: u.published.Load(), Reply: u.reply,
	})
	if !accepted {
		u.reply <- ErrEngineClosed
	}
}

// Receive reads from the backend, unless the consumer is behind or the dispatcher has
// not read the previous events: then it is called again when that has changed.
func (u *uncachedWatch) Receive(ctx *actors.Context, _ pull) {
	switch w := u.watch.Member(); {
	case w.Ended():
		ctx.Stop()
	case u.broken || w.Stalled() || u.feed.Load() != u.published.Load():
	case u.drained():
		u.endWhenCaughtUp(ErrEngineClosed)
	default:
		batch, err := u.next()
		if err != nil {
			u.endWhenCaughtUp(err)
		} else if len(batch.Events) > 0 || batch.Through > batch.After {
			u.pass(batch, ctx.Clock().Now())
		}
	}
}

// drained reports whether everything that a drain has to deliver has been read.
func (u *uncachedWatch) drained() bool {
	final := Revision(u.final.Load())
	return final > 0 && u.published.Load().Revision >= final
}

// endWhenCaughtUp reads no more, and ends the watch with reason when it has delivered what there is.
func (u *uncachedWatch) endWhenCaughtUp(reason error) {
	u.broken = true
	u.watch.Member().EndWhenCaughtUp(reason)
}

// pass passes a batch to the dispatcher.
func (u *uncachedWatch) pass(batch backend.Batch, now time.Time) {
	for _, ev := range batch.Events {
		if u.selects(ev) {
			u.window.Append(ev, now)
		}
	}
	u.window.Advance(batch.Through)
	u.window.Trim(now)
	u.publish()
	u.tell(dispatcher.Committed{})
}

// selects reports whether the watch shows an event, or the end of what it has shown. No other is
// in the window, which would push out what the consumer, whose lag does not count it, lacks.
func (u *uncachedWatch) selects(ev store.Event) bool {
	return store.Matches(u.filter, ev.Object) || store.Matches(u.filter, ev.Prev)
}

// next takes events from the backend, whose panic is an error.
func (u *uncachedWatch) next() (batch backend.Batch, err error) {
	panicked := usercode.Call("Watcher.Next", "", func() { batch, err = u.source.Next(min(uncachedBatch, u.buffer)) })
	return batch, cmp.Or(panicked, err)
}

// tell sends to the dispatcher, if there is one. A watch that ends before is never
// registered, so that the dispatcher need not know of its end.
func (u *uncachedWatch) tell(m dispatcher.Message) {
	if d := u.dispatcher.Load(); d != nil {
		d.Tell(m)
	}
}

// drain makes the watch end when it has delivered everything up to final. If that may not be an
// event of the watch, the backend is asked how far it is.
func (u *uncachedWatch) drain(ctx context.Context, final Revision) {
	u.final.Store(uint64(final))
	u.pullSoon()
	if u.published.Load().Revision >= final {
		return
	}
	var err error
	if panicked := usercode.Call("Watcher.RequestProgress", "", func() { err = backend.RequestProgress(ctx, u.source) }); panicked != nil {
		err = panicked
	}
	if err != nil && !errors.Is(err, ErrUnsupported) {
		u.engine.report(err)
	}
}

func (u *uncachedWatch) publish() {
	view := u.window.View()
	u.published.Store(&window.Snapshot{Revision: view.Revision(), Generation: 1, Window: view, At: u.engine.clockNow()})
}

// ChildFailed resumes the dispatcher, as that of a cache is, and has it make a round that has
// failed again. If it keeps failing, the watch ends.
func (u *uncachedWatch) ChildFailed(_ *actors.Context, _ actors.ID, reason any) actors.Directive {
	u.engine.partFailed(reason)
	if u.failures++; u.failures == maxFailures {
		u.watch.Member().End(errWatchFailed)
		return actors.Stop
	}
	u.tell(dispatcher.Committed{})
	return actors.Resume
}

// ChildStopped ends the actor with its dispatcher.
func (u *uncachedWatch) ChildStopped(ctx *actors.Context, _ actors.ID) { ctx.Stop() }

// errWatchFailed: a watch without a cache has failed, for example by a panic of the clock.
var errWatchFailed = errors.New("the watch has failed, as HostConfig.OnFailure has been told: watch again from its revision")

// Stopping frees the backend's watch. Unless the engine is closed, an actor that stops before
// its watch has ended has failed.
func (u *uncachedWatch) Stopping(*actors.Context) {
	if u.engine.alive() == nil {
		u.watch.Member().End(errWatchFailed)
	}
	u.source.Close()
}
