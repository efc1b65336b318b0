package watchcache

import (
	"time"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/dispatcher"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/tree"
	"github.com/watchmill/watchmill/store/window"
	"github.com/watchmill/watchmill/usercode"
)

// Config is what a watchCache needs.
type Config struct {
	// Schema describes the objects.
	Schema *store.Schema
	// SizeOf estimates an object's bytes for Limits; nil means
	// [store.DefaultSize]. It must not panic: the caller wraps user code.
	SizeOf func(*store.Object) int
	// Indexes are kept in the state tree.
	Indexes []store.Attribute
	// Emits: some events may be [store.Emitted], which no list shows. Contiguous: the source's
	// revisions are exactly its events.
	Emits, Contiguous bool
	// Limits bound the window.
	Limits window.Limits
	// Published receives the cache's snapshots.
	Published *window.Published
	// Dispatcher receives commits and new watches.
	Dispatcher *actors.Ref[dispatcher.Message]
	// Relist asks the Reflector for a new list. It must not block.
	Relist func(reflector.Reason)
	// OnRoom is called when a mailbox that refused an update has room again. It
	// must not block.
	OnRoom func()
	// OnBehind is called when a call begins to wait for a revision, which may come without
	// an event of the source; see [Cache.Waiting]. It must neither block nor panic. Optional.
	OnBehind func()
	// OnDoubt is called when the cache stops being ready, and before it takes a
	// list: storage may have gone back in time and lost acknowledged writes. It
	// must not block. Optional.
	OnDoubt func()
	// OnRelist is called after a later list was applied, with its revision and how many
	// changes it made. It must neither block nor panic. Optional.
	OnRelist func(rev store.Revision, changed int)
	// OnReady is called each time that the cache has become ready, with how long it was
	// Pending before. It must neither block nor panic. Optional.
	OnReady func(took time.Duration)
	// Report is called for each change that did not fit the state. It must
	// neither block nor panic.
	Report func(error)
	// Stats are the cache's counters.
	Stats *Stats
}

// cache is the actor. Only its turns use it; readers use what it publishes.
type cache struct {
	Config
	handle *Cache

	state     state
	window    *window.Window
	revision  store.Revision
	epoch     uint64
	storeID   string
	readiness readiness
	// until is the revision that storage had when the cache was started at an older
	// one: before it the cache is not ready.
	until store.Revision
	// filled: the state has been listed at least once.
	filled bool
	// distrusted: no update is applied until the next list.
	distrusted bool
	// restarted: the previous actor failed, and this one replaces it.
	restarted bool
	// dirty: there is something to publish.
	dirty bool
	now   time.Time

	waiters   *waiters
	waitTimer clock.Timer
	// waitsDue is when waitTimer fires.
	waitsDue  time.Time
	trimTimer clock.Timer
}

// newCache makes the actor: empty at first, after a failure from the last
// published snapshot.
func newCache(cfg Config, h *Cache) *cache {
	last := cfg.Published.Load()
	c := &cache{
		Config: cfg, handle: h, window: h.window, waiters: &h.waiters, readiness: *h.readiness.Load(),
		state: state{base: tree.New(cfg.Indexes...).View()}, revision: last.Revision, epoch: last.Epoch, storeID: last.StoreID,
		filled: last.Generation > 0, distrusted: true, restarted: h.spawned,
	}
	if c.filled {
		c.state.base = last.State()
	}
	c.window.Rewind(last.Window)
	c.state.at = last.Window.Next()
	h.spawned = true
	return c
}

// Started requests a relist after a failure, since the message that failed is
// lost. The cache stays Pending until the list, or ends if none can come.
func (c *cache) Started(ctx *actors.Context) {
	if !c.restarted {
		return
	}
	c.now = ctx.Clock().Now()
	c.setReadiness(c.readiness.pending(c.now, ErrFailed))
	c.Relist(reflector.Distrusted)
	if c.handle.final != nil {
		c.end(c.handle.final)
	}
	c.armWaits(ctx)
	c.armTrim(ctx)
}

// Restarting stops the timers, which the next actor arms again.
func (c *cache) Restarting(*actors.Context) { c.stopTimers() }

// Receive handles one update or message. Flush publishes its effects.
func (c *cache) Receive(ctx *actors.Context, e envelope) {
	if e.update.Final {
		c.handle.final = e.update.Err // first, so that it is known even if this fails
	}
	c.readClock(ctx, e.message)
	switch m := e.message.(type) {
	case nil:
		c.upstream(e.update)
	case Register:
		c.register(m)
	case Wait:
		c.wait(ctx, m)
	case Distrust:
		c.distrust(m.Cause)
		m.Reply <- nil
	case Compact:
		c.compact(m)
	case trimDue:
		// The timer may be that of an actor that has failed, and whose successor has armed
		// another. Flush arms the next.
		clock.Stop(&c.trimTimer)
	case waiterDue:
		c.answerDue(ctx)
	}
}

// readClock reads the time. If the clock, which may be user code, panics, the
// caller of msg gets an answer before the actor fails.
func (c *cache) readClock(ctx *actors.Context, msg Message) {
	failed := true
	defer func() {
		if failed {
			refuse(msg, &NotReadyError{RetryAfter: retryAfter(0), Cause: ErrFailed})
		}
	}()
	c.now = ctx.Clock().Now()
	failed = false
}

// Flush publishes what the messages have changed.
func (c *cache) Flush(ctx *actors.Context) {
	c.dropCompacted()
	c.publish()
	c.handle.waiting.Store(len(*c.waiters) > 0)
	c.armTrim(ctx)
}

// trim drops what exceeds the window's limits.
func (c *cache) trim() {
	before := c.window.View()
	if dropped := c.window.Trim(c.now); dropped > 0 {
		c.state.newest(before) // which may need the dropped events
		c.dirty = true
		c.Stats.Trimmed.Add(uint64(dropped))
	}
}

// Dropped answers a message that arrived after the stop.
func (c *cache) Dropped(e envelope) { refuse(e.message, ErrStopped) }

// refuse answers msg with err, if there is one with a Reply.
func refuse(msg Message, err error) {
	switch m := msg.(type) {
	case Register:
		m.refuse(err)
	case Wait:
		m.Reply <- err
	case Distrust:
		m.Reply <- err
	case Compact:
		m.Reply <- err
	}
}

// Stopping answers all waiting calls. It does not read the clock, which may be user
// code and panic.
func (c *cache) Stopping(*actors.Context) {
	defer c.stopTimers()
	c.setReadiness(c.readiness.stopped(c.now))
	c.waiters.all(ErrStopped)
	c.handle.waiting.Store(false)
	c.registerDelayed() // which refuses them
}

// stopTimers stops each timer, even if the clock fails to stop the other.
func (c *cache) stopTimers() {
	usercode.Each([]*clock.Timer{&c.waitTimer, &c.trimTimer}, clock.Stop)
}

// publish publishes a snapshot, notifies the dispatcher, and answers the waiters
// that it satisfies. The snapshot keeps to the window's limits even in the middle of a
// turn. It precedes the readiness, so that a reader that finds the cache ready also
// finds the state.
func (c *cache) publish() {
	c.trim()
	if !c.dirty {
		return
	}
	c.dirty = false
	next := &window.Snapshot{
		Revision:   c.revision,
		Generation: c.readiness.generation,
		Epoch:      c.epoch,
		StoreID:    c.storeID,
		Window:     c.window.View(),
		At:         c.now,
	}
	c.state.publish(c.Published.Load(), next)
	c.Published.Store(next)
	c.showReady()
	c.Stats.Publications.Add(1)
	c.Dispatcher.Tell(dispatcher.Committed{})
	if c.readiness.state == Ready {
		c.waiters.reached(c.revision)
		c.registerDelayed()
	}
}

// armTrim arms the timer that trims an idle window.
func (c *cache) armTrim(ctx *actors.Context) {
	if c.trimTimer != nil || c.window.View().Len() == 0 {
		return
	}
	period := max(c.handle.minAge/trimsPerAge, time.Second)
	c.trimTimer = ctx.Clock().AfterFunc(period, func() { c.handle.send(trimDue{}) })
}

// trimsPerAge is the number of trims of an idle window per maximum age, so that
// an event stays at most an eighth longer.
const trimsPerAge = 8

// setReadiness publishes immediately that the cache cannot serve; publish shows
// that it can, together with the state.
func (c *cache) setReadiness(r readiness) {
	c.readiness = r
	if r.state == Ready {
		c.dirty = true
		return
	}
	c.handle.readiness.Store(&r)
	c.doubt()
}

func (c *cache) doubt() {
	if c.OnDoubt != nil {
		c.OnDoubt()
	}
}

func (c *cache) showReady() {
	before := c.handle.readiness.Load()
	if c.readiness.state != Ready || before.state == Ready {
		return
	}
	r := c.readiness
	c.handle.readiness.Store(&r)
	if c.OnReady != nil {
		c.OnReady(r.since.Sub(before.since))
	}
}
