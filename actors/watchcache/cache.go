package watchcache

import (
	"time"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/dispatcher"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/store"
)

// Config is what a watchCache needs.
type Config[T any] struct {
	// Schema reads the objects.
	Schema *store.Schema[T]
	// Indexes are kept in the state tree.
	Indexes []store.Attribute
	// Limits bound the window.
	Limits store.WindowLimits
	// Published is where the cache leaves its snapshots.
	Published *store.Published[T]
	// Dispatcher is told of what was committed, and of new watches.
	Dispatcher *actors.Ref[dispatcher.Message[T]]
	// Relist asks the Reflector for a new list. It must not block.
	Relist func(reflector.Reason)
	// OnRoom is called when a mailbox that refused an update has room again. It
	// must not block.
	OnRoom func()
	// Stats is where the cache counts.
	Stats *Stats
}

// cache is the actor. All of it belongs to the actor's turns, except what it
// publishes.
type cache[T any] struct {
	Config[T]
	handle *Cache[T]

	tree       *store.Tree[T]
	window     *store.Window[T]
	revision   store.Revision
	epoch      uint64
	readiness  readiness
	waiters    waiters
	waitTimer  actors.Timer
	trimTimer  actors.Timer
	now        time.Time
	dirty      bool
	distrusted bool
	failed     bool
}

// newCache makes the actor: an empty one at first, after a failure one that
// goes on from the last published snapshot.
func newCache[T any](cfg Config[T], h *Cache[T]) *cache[T] {
	c := &cache[T]{Config: cfg, handle: h, window: h.window, readiness: *h.readiness.Load()}
	last := cfg.Published.Load()
	if last.Generation == 0 {
		c.tree = store.NewTree[T](cfg.Indexes...)
		return c
	}
	c.tree = last.State.Tree()
	c.window.Rewind(last.Window)
	c.revision, c.epoch = last.Revision, last.Epoch
	c.failed = true
	return c
}

// Started has the Reflector list again after a failure.
func (c *cache[T]) Started(ctx *actors.Context) {
	if c.failed {
		c.distrust()
		c.armWaits(ctx)
		c.armTrim(ctx)
	}
}

// Receive takes one message. What it changes becomes visible in Flush.
func (c *cache[T]) Receive(ctx *actors.Context, msg Message[T]) {
	c.now = ctx.Clock().Now()
	switch m := msg.(type) {
	case Upstream[T]:
		c.upstream(m.Update)
	case Register[T]:
		c.register(m)
	case Wait[T]:
		c.wait(ctx, m)
	case Tick[T]:
		c.trimTimer = nil
	case WaitsDue[T]:
		c.waitTimer = nil
		c.waiters.due(c.now, c.tooLate)
		c.armWaits(ctx)
	}
}

// Flush publishes what the messages have changed.
func (c *cache[T]) Flush(ctx *actors.Context) {
	if dropped := c.window.Trim(c.now); dropped > 0 {
		c.dirty = true
		c.Stats.Trimmed.Add(uint64(dropped))
	}
	c.publish()
	c.armTrim(ctx)
}

// Dropped answers whoever came too late.
func (c *cache[T]) Dropped(msg Message[T]) {
	switch m := msg.(type) {
	case Register[T]:
		m.Reply <- ErrStopped
	case Wait[T]:
		m.Reply <- ErrStopped
	}
}

// Stopping answers everyone who waits.
func (c *cache[T]) Stopping(ctx *actors.Context) {
	c.setReadiness(c.readiness.stopped(ctx.Clock().Now()))
	c.waiters.all(ErrStopped)
	for _, t := range []actors.Timer{c.waitTimer, c.trimTimer} {
		if t != nil {
			t.Stop()
		}
	}
}

// publish makes what has changed visible, tells the dispatcher, and answers
// those who waited for it.
func (c *cache[T]) publish() {
	if !c.dirty {
		return
	}
	c.dirty = false
	c.Published.Store(&store.Snapshot[T]{
		Revision:   c.revision,
		Generation: c.readiness.generation,
		Epoch:      c.epoch,
		State:      c.tree.View(),
		Window:     c.window.View(),
		At:         c.now,
	})
	c.Stats.Publications.Add(1)
	c.Dispatcher.Tell(dispatcher.Committed[T]{})
	if c.readiness.state == Ready {
		c.waiters.reached(c.revision)
	}
}

// armTrim sees to it that the window shrinks also when nothing comes any more.
func (c *cache[T]) armTrim(ctx *actors.Context) {
	if c.trimTimer != nil || c.window.View().Len() == 0 {
		return
	}
	period := max(c.handle.minAge/trimsPerAge, time.Second)
	c.trimTimer = ctx.Clock().AfterFunc(period, func() { c.handle.ref.Tell(Tick[T]{}) })
}

// trimsPerAge is how often an idle window is trimmed in the time that events
// are kept, so that they stay at most an eighth longer.
const trimsPerAge = 8

func (c *cache[T]) setReadiness(r readiness) {
	c.readiness = r
	c.handle.readiness.Store(&r)
}
