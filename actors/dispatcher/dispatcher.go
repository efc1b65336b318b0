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
	// Feed is what the watches read. The dispatcher publishes to it, and sets its
	// Recovered and Ended.
	Feed *watcher.Feed
	// BookmarkPeriod is the time between two bookmarks of a watch; zero means
	// [DefaultBookmarkPeriod].
	BookmarkPeriod time.Duration
	// Rand jitters the bookmark tick.
	Rand *rand.Rand
	// Stats is where the dispatcher counts.
	Stats *Stats
	// OnTurn is called at the end of each turn: what was published may have been
	// dispatched, and a watch recovered or ended. It must not block. Optional.
	OnTurn func()
	// OnEnd is called once for each watch that was taken in and has ended, OnStall for
	// each that is called stalled, OnRound when next, which is newer than prev, has been
	// offered to all. They must neither block nor panic. Optional.
	OnEnd, OnStall func(*watcher.Member)
	OnRound        func(prev, next *store.Snapshot)
}

// dispatcher is the actor. All of it belongs to the actor's turns.
type dispatcher struct {
	Config

	self *actors.Ref[Message]
	// unfiltered is the stream of the watches that want everything. entries are
	// the others, by canonical filter, and order has the same, in an order that
	// does not depend on the map.
	unfiltered *watcher.Stream
	entries    map[string]*filterEntry
	order      []*filterEntry
	interest   *interest[*filterEntry]

	committed bool
	inRound   bool
	touched   []*filterEntry

	signals   signals
	bookmarks *bookmarks
	slow      slow
	deadlines *deadlines
	pending   *agenda[store.Revision]
	notified  *notified
}

// filterEntry is a stream that the interest index leads to.
type filterEntry struct {
	stream *watcher.Stream
	slot   handle
	// index is the entry's place in the dispatcher's order.
	index int
	// found is what this round has found for the stream.
	found []store.Event
	// settled: when last looked at, all members followed the stream and had taken
	// all of it, and nothing has come since, so that the window can leave none
	// behind.
	settled bool
}

// Spawn starts a dispatcher under parent. It runs on the pool.
func Spawn(parent actors.Parent, cfg Config) *actors.Ref[Message] {
	if cfg.BookmarkPeriod == 0 {
		cfg.BookmarkPeriod = DefaultBookmarkPeriod
	}
	d := &dispatcher{
		Config:     cfg,
		unfiltered: watcher.NewStream(cfg.Schema, nil, 0),
		entries:    make(map[string]*filterEntry),
		interest:   newInterest[*filterEntry](),
		pending:    newAgenda(func(a, b store.Revision) bool { return a < b }),
	}
	d.deadlines, d.notified = newDeadlines(d), newNotified(d)
	cfg.Feed.Recovered = func(m *watcher.Member) { d.self.Tell(Recovered{m}) }
	cfg.Feed.Ended = func(m *watcher.Member) { d.self.Tell(Ended{m}) }
	d.self = actors.Spawn(parent, "dispatcher", func() actors.Behavior[Message] { return d }, actors.Options{})
	return d.self
}

// Started readies what needs the actor's context.
func (d *dispatcher) Started(ctx *actors.Context) {
	d.signals.onPool.executor = ctx.System().Pool()
	d.signals.onOwn.executor = ctx.System().Blocking()
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
	case Ended:
		d.forget(ctx, m.Watch)
	case Tick:
		d.bookmarks.tick(ctx)
	case ProgressDue:
		d.notified.progress(ctx)
	case BudgetSpent:
		d.budgetSpent(ctx)
	case DeadlineDue:
		d.deadlines.due(ctx)
	}
}

// Flush runs a round over all that was committed.
func (d *dispatcher) Flush(ctx *actors.Context) {
	d.catchUp(ctx)
	d.drawBudget(ctx)
	d.signals.send(d.Stats)
	if d.OnTurn != nil {
		d.OnTurn()
	}
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
		m.Watch.End(watcher.ErrEngineClosed)
		m.answer(watcher.ErrEngineClosed)
	}
}

// ChildFailed stops the actor of a watch whose handler panicked. It is never
// restarted: the event would be lost and its consumer would not know.
func (d *dispatcher) ChildFailed(*actors.Context, actors.ID, any) actors.Directive {
	return actors.Stop
}

// Stopping ends every watch before the actors of those with handlers are
// stopped.
func (d *dispatcher) Stopping(*actors.Context) {
	d.bookmarks.stop()
	d.slow.stop()
	d.deadlines.stop()
	d.notified.stop()
	d.endAll(func(*watcher.Member) error { return watcher.ErrEngineClosed })
	d.tellEnds()
	d.signals.send(d.Stats)
}
