package watchcache

import (
	"cmp"
	"sync/atomic"
	"time"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/store"
)

// mailboxSize is how many updates wait for the cache before the Reflector is
// held back. Each may be a thousand events; what is held back stays in storage.
const mailboxSize = 64

// Cache is the handle of a watchCache. Its methods are safe for concurrent use.
type Cache[T any] struct {
	ref       *actors.Ref[Message[T]]
	readiness atomic.Pointer[readiness]
	minAge    time.Duration

	// What follows belongs to the actor's turns. It outlives an actor that fails:
	// the next one rewinds the window, and answers who waits.
	window  *store.Window[T]
	waiters waiters
	// gap: a relist has passed by what may have been emitted, and nothing was
	// emitted since.
	gap bool
	// spawned: there has been an actor.
	spawned bool
}

// Spawn starts a watchCache under parent. It runs on the pool.
func Spawn[T any](parent actors.Parent, clock actors.Clock, cfg Config[T]) *Cache[T] {
	h := &Cache[T]{
		window: store.NewWindow(cfg.Limits, cfg.SizeOf),
		minAge: cmp.Or(cfg.Limits.MinAge, store.DefaultMinAge),
	}
	h.readiness.Store(&readiness{since: clock.Now()})
	h.ref = actors.Spawn(parent, "watchCache", func() actors.Behavior[Message[T]] { return newCache(cfg, h) },
		actors.Options{Capacity: mailboxSize, OnRoom: cfg.OnRoom})
	return h
}

// Offer takes an update of the Reflector. It is the Reflector's sink.
func (h *Cache[T]) Offer(u reflector.Update[T]) actors.Verdict {
	return h.ref.Offer(Upstream[T]{u})
}

// Register asks for a watch; the answer comes on m.Reply.
func (h *Cache[T]) Register(m Register[T]) {
	if !h.ref.Tell(m) {
		m.Reply <- ErrStopped
	}
}

// Wait asks to be told when a revision has been reached; the answer comes on
// m.Reply.
func (h *Cache[T]) Wait(m Wait[T]) {
	if !h.ref.Tell(m) {
		m.Reply <- ErrStopped
	}
}

// Distrust says that the state is wrong: new watches and reads of the newest
// state wait for a list. The answer comes on m.Reply.
func (h *Cache[T]) Distrust(m Distrust[T]) {
	if !h.ref.Tell(m) {
		m.Reply <- ErrStopped
	}
}

// ID returns the ID of the cache's actor, as its parent's [actors.Supervisor]
// knows it.
func (h *Cache[T]) ID() actors.ID { return h.ref.ID() }

// Check returns nil if the cache is ready, else a [*NotReadyError] or
// [ErrStopped].
func (h *Cache[T]) Check(now time.Time) error { return h.readiness.Load().check(now) }

// State returns whether the cache can serve, and how often it became ready.
func (h *Cache[T]) State() (State, uint64) {
	r := h.readiness.Load()
	return r.state, r.generation
}
