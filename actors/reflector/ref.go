package reflector

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/usercode"
)

// Ref is a handle on a Reflector. Its methods are safe for concurrent use,
// never block, and may be called whether the Reflector lives or not.
type Ref struct {
	actor *actors.Ref[message]
	// contiguous: the revisions of what it follows are exactly the events.
	contiguous bool
	waiting    func() bool // [Config].Waiting

	mu    sync.Mutex
	stats Stats

	// wanted: a wantProgress is on its way to the actor.
	wanted atomic.Bool

	// requests and delays are the last numbers used, across restarts, so that an
	// answer matches one request only. Only the actor's turns use them.
	requests, delays uint64
	// storeID is the machine's, across restarts. Only the actor's turns use it.
	storeID string
	// repeat is the timer of the next request for progress, across restarts; nil if none
	// is due. Only the actor's turns use it.
	repeat clock.Timer
}

// Spawn starts a Reflector as a child of parent. It lists immediately and then
// follows the source until it is stopped, its sink answers [actors.Gone], or an
// error is permanent.
//
// It runs on the system's pool. If the source blocks (see [backend.Traits]),
// its List and Watch are called on the system's executor for blocking actors.
//
// The errors are a [*usercode.ConfigError] for each field that is wrong, joined; or a
// [*usercode.PanicError] from Source.Traits; or [actors.ErrStopping].
func Spawn(parent actors.Parent, cfg Config) (*Ref, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	var traits backend.Traits
	if err := usercode.Call("ListerWatcher.Traits", cfg.Prefix, func() { traits = cfg.Source.Traits() }); err != nil {
		return nil, err
	}
	h := &Ref{
		contiguous: traits.Contiguous && cfg.Prefix == "", // keys outside the prefix use revisions too
		waiting:    cfg.Waiting,
	}
	h.actor = actors.Spawn(parent, "reflector", func() actors.Behavior[message] {
		return newReflector(&cfg, traits, h)
	}, actors.Options{})
	// Only now does the actor's handle exist.
	if !h.actor.Tell(begin{Started}) {
		return nil, fmt.Errorf("spawn reflector: %w", actors.ErrStopping)
	}
	return h, nil
}

// newReflector returns a new behavior that keeps the Reflector's Stats, and the
// revision and the storage of its last update, across restarts.
func newReflector(cfg *Config, traits backend.Traits, h *Ref) *reflector {
	r := &reflector{config: cfg, traits: traits, handle: h}
	r.machine.rules = rules{
		prefix:         cfg.Prefix,
		pageSize:       cfg.PageSize,
		resumeAttempts: cfg.ResumeAttempts,
		contiguous:     h.contiguous,
		state:          cfg.State && cfg.Prefix == "",
		warm:           cfg.WarmStart,
		warmFrom:       cfg.WarmFrom,
		listWhenBehind: cfg.ListWhenBehind,
		backoff:        cfg.Backoff,
		permanent:      cfg.permanent,
		random:         cfg.random,
	}
	r.machine.stats, r.machine.storeID = h.Stats(), h.storeID
	r.machine.stats.Phase, r.machine.stats.Full = Idle, false
	return r
}

// permanent calls Permanent.
func (c *Config) permanent(err error) (yes bool) {
	panicked := usercode.Call("Config.Permanent", c.Prefix, func() { yes = c.Permanent(err) })
	return yes && panicked == nil
}

// random returns a random number for the jitter.
func (c *Config) random() float64 {
	if c.Rand == nil {
		return 0
	}
	return c.Rand.Float64()
}

// ID returns the ID of the Reflector's actor, as its parent's
// [actors.Supervisor] and [actors.ChildObserver] know it.
func (h *Ref) ID() actors.ID { return h.actor.ID() }

// Room tells the Reflector that its sink, which answered [actors.Full], has room
// again. An unneeded call costs a message and has no effect.
func (h *Ref) Room() { h.actor.Tell(room{}) }

// Relist requests a list. The sink receives it when the [Backoff] allows, as a
// [Replace] with that reason, unless a list is pending for another reason; a
// list in progress satisfies the request. A reason that is not one of this
// package's counts as [Requested].
func (h *Ref) Relist(why Reason) {
	if why == 0 || why >= reasons {
		why = Requested
	}
	h.actor.Tell(relist{why})
}

// RequestProgress makes the open watch report how far it is, at once and again while
// [Config].Waiting, if its source is a [backend.ProgressRequester]. It does nothing if Waiting
// reports false, or if each revision of the source is an event, which says as much.
func (h *Ref) RequestProgress() {
	if h.contiguous || h.waiting != nil && !h.waiting() {
		return
	}
	if !h.wanted.Swap(true) {
		h.actor.Tell(wantProgress{})
	}
}

// Stop ends the Reflector. Contexts given to its source are cancelled, its
// watch is closed and its timers are stopped; the sink receives nothing more
// after the Offer in progress, if there is one. Stop does not wait: the parent
// is notified when the actor has ended. Calling it again has no effect.
func (h *Ref) Stop() { h.actor.Stop() }

// Alive reports whether the Reflector has neither stopped nor been asked to.
func (h *Ref) Alive() bool { return h.actor.Alive() }

// Stats returns the numbers as of the last update that was offered, or the end of the Reflector's last turn
// if that was later.
func (h *Ref) Stats() Stats {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stats
}

func (h *Ref) publish(s Stats) {
	h.mu.Lock()
	h.stats = s
	h.mu.Unlock()
}
