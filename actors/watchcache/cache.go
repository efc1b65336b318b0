package watchcache

import (
	"time"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/dispatcher"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/store"
)

// Config is what a watchCache needs.
type Config struct {
	// Schema describes the objects.
	Schema *store.Schema
	// SizeOf estimates an object's bytes for Limits; nil means
	// [store.DefaultSize]. It must not panic: contain what is the user's.
	SizeOf func(*store.Object) int
	// Indexes are kept in the state tree.
	Indexes []store.Attribute
	// Emits: the source has a revision for each event and for nothing else, and
	// some events are [store.Emitted], which no list shows.
	Emits bool
	// Limits bound the window.
	Limits store.WindowLimits
	// Published is where the cache leaves its snapshots.
	Published *store.Published
	// Dispatcher is told of what was committed, and of new watches.
	Dispatcher *actors.Ref[dispatcher.Message]
	// Relist asks the Reflector for a new list. It must not block.
	Relist func(reflector.Reason)
	// OnRoom is called when a mailbox that refused an update has room again. It
	// must not block.
	OnRoom func()
	// OnDoubt is called when the cache stops being ready, and before it takes a list:
	// storage may have gone back in time, and what it acknowledged before may not
	// have happened. It must not block. Optional.
	OnDoubt func()
	// Report is told of each change that did not fit the state. It must neither
	// block nor panic.
	Report func(error)
	// Stats is where the cache counts.
	Stats *Stats
}

// cache is the actor. All of it belongs to the actor's turns, except what it
// publishes.
type cache struct {
	Config
	handle *Cache

	state     state
	window    *store.Window
	revision  store.Revision
	epoch     uint64
	readiness readiness
	// filled: the state has been listed at least once.
	filled bool
	// distrusted: the state is not to be built upon until the next list.
	distrusted bool
	// succeeds: an actor before this one failed.
	succeeds bool
	// dirty: there is something to publish.
	dirty bool
	now   time.Time

	waiters   *waiters
	waitTimer actors.Timer
	// waitsDue is when waitTimer fires.
	waitsDue  time.Time
	trimTimer actors.Timer
}

// newCache makes the actor: an empty one at first, after a failure one that
// goes on from the last published snapshot.
func newCache(cfg Config, h *Cache) *cache {
	last := cfg.Published.Load()
	c := &cache{
		Config: cfg, handle: h, window: h.window, waiters: &h.waiters, readiness: *h.readiness.Load(),
		state: state{view: store.NewTree(cfg.Indexes...).View()}, revision: last.Revision, epoch: last.Epoch,
		filled: last.Generation > 0, distrusted: true, succeeds: h.spawned,
	}
	if c.filled {
		c.state.view = last.State
	}
	c.window.Rewind(last.Window)
	c.state.appliedTo(c.window.View())
	h.spawned = true
	return c
}

// Started has the Reflector list again after a failure, for the message that
// was being handled is lost. Until then nothing is applied, so the cache is not
// ready.
func (c *cache) Started(ctx *actors.Context) {
	if !c.succeeds {
		return
	}
	c.now = ctx.Clock().Now()
	c.setReadiness(c.readiness.pending(c.now, ErrFailed))
	c.Relist(reflector.Distrusted)
	c.armWaits(ctx)
	c.armTrim(ctx)
}

// Restarting leaves nothing armed that the next actor does not know of.
func (c *cache) Restarting(*actors.Context) { c.stopTimers() }

// Receive takes one message. What it changes becomes visible in Flush.
func (c *cache) Receive(ctx *actors.Context, msg Message) {
	c.look(ctx, msg)
	switch m := msg.(type) {
	case Upstream:
		c.upstream(m.Update)
	case Register:
		c.register(m)
	case Wait:
		c.wait(ctx, m)
	case Distrust:
		c.distrust(m.Cause)
		m.Reply <- nil
	case Tick:
		c.trimTimer = nil
	case WaitsDue:
		c.due(ctx)
	}
}

// look tells what time it is. If it fails, for the clock may be the user's, who
// has sent msg is answered: they know nothing of supervision.
func (c *cache) look(ctx *actors.Context, msg Message) {
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
	c.state.newest(c.window.View()) // for which it needs what may be trimmed
	if dropped := c.window.Trim(c.now); dropped > 0 {
		c.dirty = true
		c.Stats.Trimmed.Add(uint64(dropped))
	}
	c.publish()
	c.armTrim(ctx)
}

// Dropped answers whoever came too late.
func (c *cache) Dropped(msg Message) { refuse(msg, ErrStopped) }

// refuse answers msg with err, if it waits for an answer.
func refuse(msg Message, err error) {
	switch m := msg.(type) {
	case Register:
		m.refuse(err)
	case Wait:
		m.Reply <- err
	case Distrust:
		m.Reply <- err
	}
}

// Stopping answers everyone who waits.
func (c *cache) Stopping(ctx *actors.Context) {
	c.setReadiness(c.readiness.stopped(ctx.Clock().Now()))
	c.waiters.all(ErrStopped)
	c.registerDelayed() // which refuses them
	c.stopTimers()
}

func (c *cache) stopTimers() {
	for _, t := range []actors.Timer{c.waitTimer, c.trimTimer} {
		if t != nil {
			t.Stop()
		}
	}
}

// publish makes what has changed visible, tells the dispatcher, and answers
// those who waited for it. The snapshot comes before the readiness, so that
// whoever finds the cache ready also finds the state.
func (c *cache) publish() {
	if !c.dirty {
		return
	}
	c.dirty = false
	c.Published.Store(&store.Snapshot{
		Revision:   c.revision,
		Generation: c.readiness.generation,
		Epoch:      c.epoch,
		State:      c.state.newest(c.window.View()),
		Window:     c.window.View(),
		At:         c.now,
	})
	c.showReady()
	c.Stats.Publications.Add(1)
	c.Dispatcher.Tell(dispatcher.Committed{})
	if c.readiness.state == Ready {
		c.waiters.reached(c.revision)
		c.registerDelayed()
	}
}

// armTrim sees to it that the window shrinks also when nothing comes any more.
func (c *cache) armTrim(ctx *actors.Context) {
	if c.trimTimer != nil || c.window.View().Len() == 0 {
		return
	}
	period := max(c.handle.minAge/trimsPerAge, time.Second)
	c.trimTimer = ctx.Clock().AfterFunc(period, func() { c.handle.ref.Tell(Tick{}) })
}

// trimsPerAge is how often an idle window is trimmed in the time that events
// are kept, so that they stay at most an eighth longer.
const trimsPerAge = 8

// setReadiness shows that the cache cannot serve at once; that it can is shown
// with the state that it serves.
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
	if c.readiness.state == Ready && c.handle.readiness.Load().state != Ready {
		r := c.readiness
		c.handle.readiness.Store(&r)
	}
}
