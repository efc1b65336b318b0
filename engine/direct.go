package engine

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// directBatch is how many events a watch without cache takes from the backend
// at once.
const directBatch = 256

// direct is the actor behind a watch when there is no cache: it pulls the
// backend's watch into a small window of its own, as far as the consumer keeps
// up. What is not pulled stays with the backend.
//
//	backend.Watcher ──Next, while the consumer keeps up──▶ window ──▶ Watch
type direct struct {
	engine *core
	filter *store.Filter
	start  watcher.Start
	watch  *watcher.Watch
	onPool bool

	source backend.Watcher
	feed   watcher.Feed
	window *store.Window
	nobody *store.Tree
	self   atomic.Pointer[actors.Ref[directMessage]]
	broken bool

	bookmarkTimer, deadlineTimer actors.Timer
}

// directMessage is what a direct takes.
type directMessage uint8

const (
	// pull: the backend has something, or the consumer has caught up.
	pull directMessage = iota
	// bookmark: it is time for one.
	bookmark
	// deadline: the watch's time is up.
	deadline
)

// adopt asks the root to start a direct. The reply gets nil once events reach
// the watch.
type adopt struct {
	direct *direct
	reply  chan<- error
}

// watchBackend starts a watch on the backend itself.
func (e *core) watchBackend(ctx context.Context, filter *store.Filter, opts WatchOptions, handle func(store.Event)) (*watcher.Watch, error) {
	if opts.Last > 0 || opts.Policy == Conflate {
		return nil, fmt.Errorf("%w: WatchOptions.Last and Conflate need the cache, which Config.NoCache turns off", ErrUnsupported)
	}
	d := &direct{engine: e, filter: filter, onPool: opts.OnPool, nobody: store.NewTree()}
	d.feed.Await, d.feed.Go = e.host.await, e.host.spawn
	d.feed.Recovered = func(*watcher.Watch) { d.tell(pull) }
	d.watch = watcher.New(&d.feed, e.watcherOptions(opts), handle)
	if err := d.open(ctx, opts); err != nil {
		return nil, err
	}
	reply := make(chan error, 1)
	if !e.root.Tell(adopt{d, reply}) {
		d.source.Close()
		return nil, ErrEngineClosed
	}
	if err := e.host.reply(ctx, reply); err != nil {
		d.watch.Stop()
		return nil, err
	}
	d.watch.StopWith(ctx)
	return d.watch, nil
}

// open reads where the watch starts and starts the backend's watch there.
func (d *direct) open(ctx context.Context, opts WatchOptions) error {
	storage := d.engine.storage
	current, err := storage.Backend().Revision(ctx)
	if err != nil {
		return err
	}
	d.start.After = opts.From
	switch {
	case opts.InitialState:
		if err := d.list(ctx, opts); err != nil {
			return err
		}
	case opts.From == 0:
		d.start.After = current
	case opts.From > current:
		d.start.After, d.start.Skip = current, opts.From
	}
	d.window = store.NewWindow(store.WindowLimits{
		MinAge: math.MaxInt64, MaxBytes: math.MaxInt64,
		MaxEvents: 2 * (d.watch.Options().Buffer + directBatch),
	}, d.engine.sizeOf)
	d.window.Reset(d.start.After)
	d.publish()
	// Positions never reach this stream's end, so the watch reads the window. It is
	// begun here, not in Started, since the consumer may be there first.
	d.watch.Begin(watcher.NewStream(d.engine.schema, d.filter, math.MaxUint64), d.start, d.onPool)
	d.source, err = storage.Backend().Watch(ctx, backend.WatchOptions{
		Prefix: d.filter.Prefix(), From: d.start.After, Notify: func() { d.tell(pull) },
	})
	return err
}

// list reads the initial state.
func (d *direct) list(ctx context.Context, opts WatchOptions) error {
	page, err := d.engine.storage.List(ctx, backend.ListOptions{Prefix: d.filter.Prefix()})
	if err != nil {
		return err
	}
	if page.Revision < opts.From {
		return &FutureError{Requested: opts.From, Current: page.Revision}
	}
	state := store.NewTree()
	for _, o := range page.Items {
		state.Put(o)
	}
	d.start.State, d.start.After, d.start.InitialEnd = state.View(), page.Revision, opts.Bookmarks
	return nil
}

func (d *direct) tell(m directMessage) {
	if self := d.self.Load(); self != nil {
		self.Tell(m)
	}
}

// Started spawns the watcher and sets the timers.
func (d *direct) Started(ctx *actors.Context) {
	w := d.watch
	executor := ctx.System().Blocking()
	if w.OnPool() {
		executor = ctx.System().Pool()
	}
	if err := actors.SpawnWake(ctx, w, w.Box(), executor); err != nil {
		w.Finish(err)
		ctx.Stop()
		return
	}
	if w.Ended() {
		w.Box().Stop()
	}
	d.armBookmark(ctx)
	if at := w.Options().Deadline; !at.IsZero() {
		d.deadlineTimer = ctx.Clock().AfterFunc(at.Sub(ctx.Clock().Now()), func() { d.tell(deadline) })
	}
}

// armBookmark sets the timer of the next bookmark.
func (d *direct) armBookmark(ctx *actors.Context) {
	if d.watch.Options().Bookmarks {
		d.bookmarkTimer = ctx.Clock().AfterFunc(d.engine.cfg.bookmarkPeriod, func() { d.tell(bookmark) })
	}
}

// Receive takes one message.
func (d *direct) Receive(ctx *actors.Context, m directMessage) {
	switch m {
	case pull:
		d.pull()
	case bookmark:
		d.watch.RequestBookmark()
		d.armBookmark(ctx)
	case deadline:
		d.watch.Finish(watcher.ErrDeadline)
	}
	d.watch.Box().Wake()
}

// pull takes what the backend has, until the consumer is behind.
func (d *direct) pull() {
	for !d.broken && !d.watch.Ended() {
		if d.watch.Behind(d.window.View().Next()) && d.watch.SetStalled() {
			d.behind()
			return
		}
		if d.watch.Stalled() {
			return
		}
		batch, err := d.source.Next(directBatch)
		if err != nil {
			d.broken = true
			d.watch.FinishWhenCaughtUp(err)
			return
		}
		d.append(batch)
		if len(batch.Events) == 0 {
			return
		}
	}
}

// behind stops pulling until the consumer has caught up, or ends the watch if
// its policy says so.
func (d *direct) behind() {
	if d.watch.Options().Policy == Terminate {
		d.watch.FinishAfterPrelude(watcher.ErrSlowConsumer)
	}
}

func (d *direct) append(batch backend.Batch) {
	now := d.engine.host.system.Clock().Now()
	for _, ev := range batch.Events {
		d.window.Append(ev, now)
	}
	d.window.Advance(batch.Through)
	d.window.Trim(now)
	d.publish()
}

func (d *direct) publish() {
	view := d.window.View()
	d.feed.Publish(&store.Snapshot{Revision: view.Revision(), Generation: 1, State: d.nobody.View(), Window: view})
}

// ChildStopped ends the actor with its watcher.
func (d *direct) ChildStopped(ctx *actors.Context, _ actors.ID) { ctx.Stop() }

// Stopping ends the watch if it was stopped from above.
func (d *direct) Stopping(*actors.Context) {
	d.source.Close()
	for _, t := range []actors.Timer{d.bookmarkTimer, d.deadlineTimer} {
		if t != nil {
			t.Stop()
		}
	}
	d.watch.Finish(watcher.ErrEngineClosed)
}
