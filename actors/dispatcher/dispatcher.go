package dispatcher

import (
	"math/rand/v2"
	"time"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
)

// DefaultBookmarkPeriod is how often a watch that wants bookmarks gets one when
// nothing else hurries it: once a minute, as the API server does.
const DefaultBookmarkPeriod = time.Minute

// Config is what a dispatcher needs.
type Config[T any] struct {
	// Source is where the watchCache publishes.
	Source *store.Published[T]
	// Feed is what the watchers read; the dispatcher publishes to it.
	Feed *watcher.Feed[T]
	// BookmarkPeriod is the time between two bookmarks of a watch; zero means
	// [DefaultBookmarkPeriod].
	BookmarkPeriod time.Duration
	// Rand jitters the bookmark tick.
	Rand *rand.Rand
	// Stats is where the dispatcher counts.
	Stats *Stats
}

// dispatcher is the actor. All of it belongs to the actor's turns.
type dispatcher[T any] struct {
	Config[T]

	self     *actors.Ref[Message[T]]
	everyone *watcher.Stream[T]
	streams  map[string]*route[T] // by canonical filter
	routes   []*route[T]          // the same, in an order that does not depend on the map
	interest *interest[*route[T]]
	watches  map[actors.ID]*watcher.Watch[T]

	committed bool
	inRound   bool
	touched   []*route[T]

	onPool, onOwn wakes
	bookmarks     *bookmarks[T]
	slow          slow[T]
	deadlines     *deadlines[T]
	future        future[T]
}

// route is a stream that the interest index leads to.
type route[T any] struct {
	stream *watcher.Stream[T]
	place  handle
	// index is the route's place among the dispatcher's.
	index int
	// pending is what this round has found for the stream.
	pending []store.Event[T]
	// settled: when last looked at, all members followed the stream and had taken
	// all of it, and nothing has come since, so that the window can overrun none.
	settled bool
}

// wakes collects whom to wake, an executor's worth at a time.
type wakes struct {
	executor actors.Executor
	boxes    []*actors.WakeBox
}

// Spawn starts a dispatcher under parent. It runs on the pool.
func Spawn[T any](parent actors.Parent, cfg Config[T]) *actors.Ref[Message[T]] {
	if cfg.BookmarkPeriod == 0 {
		cfg.BookmarkPeriod = DefaultBookmarkPeriod
	}
	d := &dispatcher[T]{
		Config:   cfg,
		streams:  make(map[string]*route[T]),
		interest: newInterest[*route[T]](),
		watches:  make(map[actors.ID]*watcher.Watch[T]),
	}
	d.everyone = watcher.NewStream[T](nil, 0)
	d.deadlines = newDeadlines[T]()
	d.self = actors.Spawn(parent, "dispatcher", func() actors.Behavior[Message[T]] { return d }, actors.Options{})
	return d.self
}

// Started readies what needs the actor's context.
func (d *dispatcher[T]) Started(ctx *actors.Context) {
	d.onPool.executor = ctx.System().Pool()
	d.onOwn.executor = ctx.System().Blocking()
	d.bookmarks = newBookmarks(d)
	d.slow = newSlow[T](ctx.Clock().Now())
}

// Receive takes one message. Rounds wait for Flush, so that any number of
// Committed make one, or for a Register: a watch comes after what was committed
// before it.
func (d *dispatcher[T]) Receive(ctx *actors.Context, msg Message[T]) {
	switch m := msg.(type) {
	case Committed[T]:
		d.committed = true
	case Register[T]:
		d.admit(ctx, m)
	case Recovered[T]:
		d.recovered(ctx, m.Watch)
	case Tick[T]:
		d.bookmarks.tick(ctx)
	case BudgetSpent[T]:
		d.budgetSpent(ctx)
	case DeadlineDue[T]:
		d.deadlineDue(ctx)
	}
}

// Flush runs a round over all that was committed.
func (d *dispatcher[T]) Flush(ctx *actors.Context) {
	d.catchUp(ctx)
	d.drawBudget(ctx)
	d.wakeAll()
}

// catchUp runs a round if there is something to dispatch. If the round fails,
// the next message brings another.
func (d *dispatcher[T]) catchUp(ctx *actors.Context) {
	if d.committed {
		d.round(ctx)
		d.committed = false
	}
}

// Dropped answers a registration that came too late.
func (d *dispatcher[T]) Dropped(msg Message[T]) {
	if m, ok := msg.(Register[T]); ok {
		m.Watch.Finish(watcher.ErrEngineClosed)
		m.Reply <- watcher.ErrEngineClosed
	}
}

// ChildFailed stops the watcher whose handler panicked. It is never restarted:
// the event would be lost and its consumer would not know.
func (d *dispatcher[T]) ChildFailed(*actors.Context, actors.ID, any) actors.Directive {
	return actors.Stop
}

// ChildStopped forgets a watch.
func (d *dispatcher[T]) ChildStopped(ctx *actors.Context, id actors.ID) {
	w, ok := d.watches[id]
	if !ok {
		return
	}
	delete(d.watches, id)
	d.forget(ctx, w)
}

// Stopping ends every watch before the watchers are stopped.
func (d *dispatcher[T]) Stopping(ctx *actors.Context) {
	d.finishAll(func(*watcher.Watch[T]) error { return watcher.ErrEngineClosed })
	d.bookmarks.stop()
	d.slow.stop()
	d.deadlines.stop()
}
