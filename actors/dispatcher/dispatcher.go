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
type Config struct {
	// Schema describes the objects.
	Schema *store.Schema
	// Source is where the watchCache publishes.
	Source *store.Published
	// Feed is what the watchers read; the dispatcher publishes to it.
	Feed *watcher.Feed
	// BookmarkPeriod is the time between two bookmarks of a watch; zero means
	// [DefaultBookmarkPeriod].
	BookmarkPeriod time.Duration
	// Rand jitters the bookmark tick.
	Rand *rand.Rand
	// Stats is where the dispatcher counts.
	Stats *Stats
}

// dispatcher is the actor. All of it belongs to the actor's turns.
type dispatcher struct {
	Config

	self     *actors.Ref[Message]
	everyone *watcher.Stream
	streams  map[string]*route // by canonical filter
	routes   []*route          // the same, in an order that does not depend on the map
	interest *interest[*route]
	watches  map[actors.ID]*watcher.Watch

	committed bool
	inRound   bool
	touched   []*route

	onPool, onOwn wakes
	bookmarks     *bookmarks
	slow          slow
	deadlines     *deadlines
	future        future
}

// route is a stream that the interest index leads to.
type route struct {
	stream *watcher.Stream
	place  handle
	// index is the route's place among the dispatcher's.
	index int
	// pending is what this round has found for the stream.
	pending []store.Event
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
func Spawn(parent actors.Parent, cfg Config) *actors.Ref[Message] {
	if cfg.BookmarkPeriod == 0 {
		cfg.BookmarkPeriod = DefaultBookmarkPeriod
	}
	d := &dispatcher{
		Config:   cfg,
		streams:  make(map[string]*route),
		interest: newInterest[*route](),
		watches:  make(map[actors.ID]*watcher.Watch),
	}
	d.everyone = watcher.NewStream(cfg.Schema, nil, 0)
	d.deadlines = newDeadlines()
	d.self = actors.Spawn(parent, "dispatcher", func() actors.Behavior[Message] { return d }, actors.Options{})
	return d.self
}

// Started readies what needs the actor's context.
func (d *dispatcher) Started(ctx *actors.Context) {
	d.onPool.executor = ctx.System().Pool()
	d.onOwn.executor = ctx.System().Blocking()
	d.bookmarks = newBookmarks(d)
	d.slow = newSlow(ctx.Clock().Now())
}

// Receive takes one message. Rounds wait for Flush, so that any number of
// Committed make one, or for a Register: a watch comes after what was committed
// before it.
func (d *dispatcher) Receive(ctx *actors.Context, msg Message) {
	switch m := msg.(type) {
	case Committed:
		d.committed = true
	case Register:
		d.admit(ctx, m)
	case Recovered:
		d.recovered(ctx, m.Watch)
	case Tick:
		d.bookmarks.tick(ctx)
	case BudgetSpent:
		d.budgetSpent(ctx)
	case DeadlineDue:
		d.deadlineDue(ctx)
	}
}

// Flush runs a round over all that was committed.
func (d *dispatcher) Flush(ctx *actors.Context) {
	d.catchUp(ctx)
	d.drawBudget(ctx)
	d.wakeAll()
}

// catchUp runs a round if there is something to dispatch. If the round fails,
// the next message brings another.
func (d *dispatcher) catchUp(ctx *actors.Context) {
	if d.committed {
		d.round(ctx)
		d.committed = false
	}
}

// Dropped answers a registration that came too late.
func (d *dispatcher) Dropped(msg Message) {
	if m, ok := msg.(Register); ok {
		m.Watch.Finish(watcher.ErrEngineClosed)
		m.Reply <- watcher.ErrEngineClosed
	}
}

// ChildFailed stops the watcher whose handler panicked. It is never restarted:
// the event would be lost and its consumer would not know.
func (d *dispatcher) ChildFailed(*actors.Context, actors.ID, any) actors.Directive {
	return actors.Stop
}

// ChildStopped forgets a watch.
func (d *dispatcher) ChildStopped(ctx *actors.Context, id actors.ID) {
	w, ok := d.watches[id]
	if !ok {
		return
	}
	delete(d.watches, id)
	d.forget(ctx, w)
}

// Stopping ends every watch before the watchers are stopped.
func (d *dispatcher) Stopping(ctx *actors.Context) {
	d.finishAll(func(*watcher.Watch) error { return watcher.ErrEngineClosed })
	d.bookmarks.stop()
	d.slow.stop()
	d.deadlines.stop()
}
