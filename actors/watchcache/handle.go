package watchcache

import (
	"cmp"
	"sync/atomic"
	"time"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/dispatcher"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/window"
)

// mailboxSize is how many updates, of up to a thousand events each, wait for the
// cache before the Reflector stops reading from storage.
const mailboxSize = 64

// Cache is the handle of a watchCache. Its methods are safe for concurrent use.
type Cache struct {
	ref       *actors.Ref[envelope]
	readiness atomic.Pointer[readiness]
	waiting   atomic.Bool
	minAge    time.Duration
	// published and dispatcher are those of Config.
	published  *window.Published
	dispatcher *actors.Ref[dispatcher.Message]

	// The fields below are used by the actor's turns only. They outlive a failed
	// actor: the next one rewinds the window and answers the waiters.
	window  *window.Window
	waiters waiters
	// delayed are the watches to be registered when the cache is ready.
	delayed []Register
	// compacted is the revision before which history was discarded.
	compacted store.Revision
	// gap: a relist may have skipped emitted events, and none has come since. The next
	// one is marked AfterGap.
	gap bool
	// spawned: an actor has been made before.
	spawned bool
	// final is why the source has ended for good; nil before. It says so only once.
	final error
}

// Spawn starts a watchCache under parent. It runs on the pool.
func Spawn(parent actors.Parent, clock clock.Clock, cfg Config) *Cache {
	h := &Cache{
		window:    window.New(cfg.Limits, cfg.SizeOf),
		minAge:    cmp.Or(cfg.Limits.MinAge, window.DefaultMinAge),
		published: cfg.Published, dispatcher: cfg.Dispatcher,
	}
	h.readiness.Store(&readiness{since: clock.Now()})
	h.ref = actors.Spawn(parent, "watchCache", func() actors.Behavior[envelope] { return newCache(cfg, h) },
		actors.Options{Capacity: mailboxSize, OnRoom: cfg.OnRoom})
	return h
}

// Offer takes an update of the Reflector. It is the Reflector's sink: a full mailbox
// holds the Reflector back.
func (h *Cache) Offer(u reflector.Update) actors.Verdict {
	return h.ref.Offer(envelope{update: u})
}

// send sends any other message, or refuses it if the cache has stopped.
func (h *Cache) send(m Message) {
	if !h.ref.Tell(envelope{message: m}) {
		refuse(m, ErrStopped)
	}
}

// Register asks for a watch; the answer comes on m.Reply, if there is one.
func (h *Cache) Register(m Register) {
	if !h.pass(m) {
		h.send(m)
	}
}

// Wait waits for a revision. The answer comes on m.Reply.
func (h *Cache) Wait(m Wait) { h.send(m) }

// Waiting reports whether a call waits for a revision. It is true before OnBehind is called.
func (h *Cache) Waiting() bool { return h.waiting.Load() }

// Distrust reports that the state is wrong: new watches and reads of the newest
// state wait for a list. The answer comes on m.Reply.
func (h *Cache) Distrust(m Distrust) { h.send(m) }

// Compact discards history. The answer comes on m.Reply.
func (h *Cache) Compact(m Compact) { h.send(m) }

// ID returns the ID of the cache's actor, with which its parent's [actors.Supervisor] is
// called.
func (h *Cache) ID() actors.ID { return h.ref.ID() }

// Check returns nil if the cache is ready, else a [*NotReadyError] or
// [ErrStopped].
func (h *Cache) Check(now time.Time) error { return h.readiness.Load().check(now) }

// Distrusted reports whether the published state was found to be wrong and the cache has not
// been ready since. Then the states that its window leads back to may be wrong, too.
func (h *Cache) Distrusted() bool { return h.readiness.Load().wrong }

// Ready reports whether the cache can serve.
func (h *Cache) Ready() bool { return h.readiness.Load().state == Ready }

// State returns the current state and the number of times the cache became
// ready.
func (h *Cache) State() (State, uint64) {
	r := h.readiness.Load()
	return r.state, r.generation
}
