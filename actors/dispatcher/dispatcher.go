package dispatcher

import (
	"math/rand/v2"
	"time"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/window"
	"github.com/watchmill/watchmill/usercode"
)

// DefaultBookmarkPeriod is the time between two bookmarks of a watch without other
// reasons for one: once a minute, like the API server.
const DefaultBookmarkPeriod = time.Minute

// Config is what a dispatcher needs.
type Config struct {
	// Schema describes the objects.
	Schema *store.Schema
	// Source has the snapshots that the watchCache publishes.
	Source *window.Published
	// Feed is read by the watches. The dispatcher publishes to it, and sets its
	// Recovered and Ended unless they are set: they must be if a watch of the feed may
	// end before the dispatcher is spawned.
	Feed *watcher.Feed
	// BookmarkPeriod is the time between two bookmarks of a watch; zero means
	// [DefaultBookmarkPeriod].
	BookmarkPeriod time.Duration
	// Rand jitters the bookmark tick.
	Rand *rand.Rand
	// Stats are the dispatcher's counters.
	Stats *Stats
	// OnTurn is called at the end of each turn, which may have dispatched events or
	// ended watches. It must not block. Optional.
	OnTurn func()
	// OnEnd is called once for each watch that was taken in and has ended, OnStall for
	// each that is called stalled, OnRound when next, which is newer than prev, has been
	// offered to all. They must neither block nor panic. Optional.
	OnEnd, OnStall func(*watcher.Member)
	OnRound        func(prev, next *window.Snapshot)
}

func (c Config) withDefaults() Config {
	if c.BookmarkPeriod == 0 {
		c.BookmarkPeriod = DefaultBookmarkPeriod
	}
	return c
}

// dispatcher is the actor. Only its turns use it.
type dispatcher struct {
	Config

	self *actors.Ref[Message]
	// unfiltered is the stream of the watches without a filter. entries are the
	// others, by canonical filter; order has the same in a deterministic order.
	unfiltered *watcher.Stream
	entries    map[string]*filterEntry
	order      []*filterEntry
	interest   *interest[*filterEntry]

	committed bool
	inRound   bool
	// draining, if not nil, is why watches end when they have caught up. drainDue: the
	// registered ones are to be ended after the next round.
	draining error
	drainDue bool
	touched  []*filterEntry

	signals   signals
	bookmarks *bookmarks
	slow      slow
	deadlines *deadlines
	pending   *watchQueue[store.Revision]
	notified  *notified
}

// filterEntry is a stream in the interest index.
type filterEntry struct {
	stream *watcher.Stream
	slot   handle
	// index is the entry's place in the dispatcher's order.
	index int
	// found are the events that this round has found for the stream.
	found []store.Event
	// settled: at the last check, all members followed the stream and had read all
	// of it, and it has no events and no members since, so that no member needs the
	// window. One that is pending does not follow.
	settled bool
	// forgets is where the window starts when the stream has something to drop; see
	// [watcher.Stream.Forget].
	forgets window.Seq
}

// Spawn starts a dispatcher under parent. It runs on the pool.
func Spawn(parent actors.Parent, cfg Config) *actors.Ref[Message] {
	cfg = cfg.withDefaults()
	d := &dispatcher{
		Config:     cfg,
		unfiltered: watcher.NewStream(cfg.Schema, nil, 0),
		entries:    make(map[string]*filterEntry),
		interest:   newInterest[*filterEntry](),
		pending:    newWatchQueue(func(a, b store.Revision) bool { return a < b }),
	}
	d.bookmarks, d.deadlines, d.notified = newBookmarks(d), newDeadlines(d), newNotified(d)
	d.slow.set = newStalled[*watcher.Member]()
	if cfg.Feed.Ended == nil {
		cfg.Feed.Recovered = func(m *watcher.Member) { d.self.Tell(Recovered{m}) }
		cfg.Feed.Ended = func(m *watcher.Member) { d.self.Tell(Ended{m}) }
	}
	d.self = actors.Spawn(parent, "dispatcher", func() actors.Behavior[Message] { return d }, actors.Options{})
	return d.self
}

// Started initializes the parts that need the actor's context.
func (d *dispatcher) Started(ctx *actors.Context) {
	d.signals.onPool.executor = ctx.System().Pool()
	d.signals.onOwn.executor = ctx.System().Blocking()
	d.slow.budget = newBudget(ctx.Clock().Now())
}

// Receive handles one message. A round runs in Flush, so that any number of
// Committed make one, or before a Register or a Drain, since these come after the commit
// of the snapshot that was read, whether Committed has come or is still to come.
func (d *dispatcher) Receive(ctx *actors.Context, msg Message) {
	switch m := msg.(type) {
	case Committed:
		d.committed = true
	case Register:
		d.committed = true
		d.admit(ctx, m)
	case Drain:
		d.drain(m)
	case Recovered:
		d.recovered(ctx, m.Watch)
	case Ended:
		d.forget(ctx, m.Watch)
	case bookmarksDue:
		d.bookmarks.tick(ctx)
	case progressDue:
		d.notified.progress(ctx)
	case budgetSpent:
		d.budgetSpent()
	case deadlineDue:
		d.deadlines.due(ctx)
	}
}

// Flush runs a round over all commits.
func (d *dispatcher) Flush(ctx *actors.Context) {
	d.catchUp()
	d.signals.send(d.Stats)
	if d.OnTurn != nil {
		d.OnTurn()
	}
	d.armTimers(ctx)
}

// armTimers arms the timers that are needed and not armed. It comes last, since the clock
// may be the user's and panic: then the next message brings another try.
func (d *dispatcher) armTimers(ctx *actors.Context) {
	d.bookmarks.arm(ctx)
	d.deadlines.arm(ctx)
	d.notified.arm(ctx)
	d.drawBudget(ctx)
}

// catchUp runs a round if there is something to dispatch, and then has watches end if
// they are to. If the round fails, the next message brings another.
func (d *dispatcher) catchUp() {
	if d.committed {
		d.round()
		d.committed = false
	}
	if d.drainDue {
		d.each(d.endWhenCaughtUp)
		d.drainDue = false
	}
}

// drain has every watch end when it has caught up with what is published.
func (d *dispatcher) drain(m Drain) {
	d.draining, d.drainDue, d.committed = m.Reason, true, true
	defer m.answer(nil) // even if it fails: a call waits
	d.catchUp()
}

// endWhenCaughtUp has one watch end when it has caught up, if all are to.
func (d *dispatcher) endWhenCaughtUp(w *watcher.Member) {
	if d.draining != nil && w.EndQuietlyWhenCaughtUp(d.draining) {
		d.signals.add(w)
	}
}

// Dropped answers what came too late.
func (d *dispatcher) Dropped(msg Message) {
	switch m := msg.(type) {
	case Register:
		m.Watch.End(watcher.ErrEngineClosed)
		m.answer(watcher.ErrEngineClosed)
	case Drain:
		m.answer(watcher.ErrEngineClosed)
	}
}

// ChildFailed stops the actor of a watch whose handler panicked. A restart would
// silently lose the event.
func (d *dispatcher) ChildFailed(*actors.Context, actors.ID, any) actors.Directive {
	return actors.Stop
}

// Stopping ends every watch before the actors of those with handlers are
// stopped. Their consumers are signalled even if OnEnd ends the goroutine. The timers come last,
// since the clock may be the user's and panic.
func (d *dispatcher) Stopping(*actors.Context) {
	defer d.stopTimers()
	d.endAll(func(*watcher.Member) error { return watcher.ErrEngineClosed })
	defer d.signals.send(d.Stats)
	d.tellEnds()
}

// stopTimers stops each timer, even if the clock fails to stop another.
func (d *dispatcher) stopTimers() {
	stops := []func(){d.bookmarks.stop, d.slow.stop, d.deadlines.stop, d.notified.stop}
	usercode.Each(stops, func(stop func()) { stop() })
}
