package engine

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/usercode"
)

// DefaultCloseTimeout is how long Close waits for handlers that are running:
// longer than any handler that is not stuck.
const DefaultCloseTimeout = 10 * time.Second

// ErrIdle is returned by calls that would block forever in a deterministic run: everything
// has run, the condition that they wait for does not hold, and time does not pass while they
// wait. Move the virtual clock, and call again: a timer may bring what was waited for, such as
// the next attempt to reach storage.
var ErrIdle = errors.New("deterministic run is idle: nothing is left to run before the clock moves")

// HostConfig configures a Host. The zero value is for production: the real clock, a
// pool worker per CPU, no logs.
type HostConfig struct {
	// Workers is the number of pool workers, at most 10,000; zero means GOMAXPROCS.
	Workers int
	// Clock is the engines' clock; nil means the real one. A virtual clock that moves by
	// more than a second while the pool runs a turn makes that a turn that holds a worker,
	// as OnFailure is told.
	Clock Clock
	// Executor, if set, runs everything instead of the pool: with [NewSeededExecutor], a virtual
	// clock and a Seed a run is deterministic. Calls then run the engine while they
	// wait, on their own goroutine.
	Executor Executor
	// Seed seeds all randomness (jitter of timers). Zero draws one.
	Seed uint64
	// Logger gets a line for each watch that ends or stalls, each list after the
	// first, and each error and failure. Ends that the program has asked for, by Stop, Close or
	// a Timeout, have the level Debug, which slog's handlers leave out by default. Nil discards
	// all lines, except for the report of an engine that was never closed, which goes to
	// slog.Default. A line whose handler panics is lost.
	Logger *slog.Logger
	// Metrics gets the age of events at the stages of their delivery. Nil costs
	// nothing.
	Metrics Metrics
	// OnFailure is called with every panic in an actor, whether the actor was
	// restarted or stopped, and in the Logger's handler. It is also called while a turn holds
	// a worker of the pool, or the caller of Watch, for more than a second of the Clock, as a
	// handler with OnPool that blocks: then the failure's Reason is [actors.ErrWorkerHeld], it has
	// no Stack, and the actor goes on.
	// It must not block.
	OnFailure func(Failure)
	// CloseTimeout is how long Close waits; zero means [DefaultCloseTimeout].
	CloseTimeout time.Duration
}

// validate returns a [*ConfigError] for the first field that is wrong.
func (c *HostConfig) validate() error {
	if c.CloseTimeout < 0 {
		return &ConfigError{Field: "CloseTimeout", Problem: "is negative; zero means 10 s"}
	}
	return nil
}

// withDefaults returns c with defaults for the fields that are zero, except those that [actors.NewSystem]
// fills in.
func (c HostConfig) withDefaults() HostConfig {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Seed == 0 {
		c.Seed = rand.Uint64()
	}
	c.CloseTimeout = cmp.Or(c.CloseTimeout, DefaultCloseTimeout)
	return c
}

// Host is shared by engines: the actor system with its workers, the clock, the
// randomness. It costs about 30 KB and can run many engines. Make one with [NewHost]: a
// configuration with a zero Host is refused, and its methods panic. The methods are safe
// for concurrent use.
type Host struct{ core hostCore }

// hostCore is a *[host], hidden from the user's compiler; see [engineCore].
type hostCore interface {
	actors() int
	timers() int
	names() []string
	deterministic() bool
	clock() Clock
	newRand() *rand.Rand
	closeTimeout() time.Duration
	await(ctx context.Context, ready <-chan struct{}) error
}

// host is the content of a [Host].
type host struct {
	realTime bool // the clock is that of package time
	system   *actors.System
	timeout  time.Duration
	// run runs all runnable turns in a deterministic run, and returns their number.
	// Nil otherwise.
	run func() int

	metrics    Metrics
	leakLogger *slog.Logger

	mu      sync.Mutex
	rand    *rand.Rand
	ids     *rand.Rand // of engines, apart from rand so that timers do not depend on them
	engines []*core    // the running ones, in the order in which they began
}

// coreOf returns the content of h, for this package alone: a user's package would compile
// what it reaches.
func coreOf(h *Host) *host { return h.core.(*host) }

// NewHost makes a host. Close it after its engines.
//
// Errors: [*ConfigError].
func NewHost(cfg HostConfig) (*Host, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	leakLogger := usercode.Logger(cmp.Or(cfg.Logger, slog.Default()), func(*usercode.PanicError) {})
	cfg = cfg.withDefaults()
	system, err := actors.NewSystem(actors.SystemConfig{
		Workers: cfg.Workers, Clock: cfg.Clock, Executor: cfg.Executor, Logger: cfg.Logger, OnFailure: cfg.OnFailure,
	})
	if err != nil {
		return nil, err
	}
	h := &host{
		realTime: cfg.Clock == nil || cfg.Clock == RealClock(),
		system:   system, timeout: cfg.CloseTimeout,
		metrics: cfg.Metrics, leakLogger: leakLogger,
		rand: rand.New(rand.NewPCG(cfg.Seed, 0)), ids: rand.New(rand.NewPCG(cfg.Seed, 1)),
	}
	if driven, ok := cfg.Executor.(interface{ Run() int }); ok {
		h.run = driven.Run
	}
	return &Host{h}, nil
}

// ValidateHost returns a [*ConfigError] of that field if h is a zero Host, for packages that have
// one in their configuration. Nil is none there, and no error.
func ValidateHost(field string, h *Host) error {
	if h != nil && h.core == nil {
		return &ConfigError{Field: field, Problem: "is a zero Host; give one that NewHost has returned, or none"}
	}
	return nil
}

// closeTime returns a context for as long as closing may take.
func (h *host) closeTime() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), h.timeout)
}

// Actors returns how many actors of its engines are alive, zero once all are closed.
func (h *Host) Actors() int { return h.core.actors() }

func (h *host) actors() int { return h.system.Actors() }

// Timers returns how many timers of its engines are armed, zero once all are closed.
func (h *Host) Timers() int { return h.core.timers() }

func (h *host) timers() int { return h.system.Timers() }

// ActorNames returns the sorted names of the actors that are alive on the host, to
// find leaks. It is empty once all engines are closed.
func (h *Host) ActorNames() []string { return h.core.names() }

func (h *host) names() []string { return h.system.Names() }

// Deterministic reports whether an executor was given that runs only while a call
// waits, as [NewSeededExecutor] returns.
func (h *Host) Deterministic() bool { return h.core.deterministic() }

func (h *host) deterministic() bool { return h.run != nil }

// Clock returns the host's clock.
func (h *Host) Clock() Clock { return h.core.clock() }

func (h *host) clock() Clock { return h.system.Clock() }

// NewRand returns a source of randomness for one user, seeded by the host's.
func (h *Host) NewRand() *rand.Rand { return h.core.newRand() }

// CloseTimeout returns how long Close of the host, and of engines and informers on it,
// waits for user code to return.
func (h *Host) CloseTimeout() time.Duration { return h.core.closeTimeout() }

func (h *host) closeTimeout() time.Duration { return h.timeout }

// Await blocks until ready is signalled or closed, or ctx is done; then it returns ctx's
// cause, unless ready was before. On a deterministic host it runs the engines meanwhile, and
// returns [ErrIdle] if that cannot end the wait. It must not be called from an actor's turn.
func (h *Host) Await(ctx context.Context, ready <-chan struct{}) error {
	return h.core.await(ctx, ready)
}

// SystemOf returns the actor system of the host, for packages that run actors of their
// own. Only the host closes it.
//
//go:noinline
func SystemOf(h *Host) *actors.System { return coreOf(h).system }

// newRand returns a source of randomness of its own for one actor.
func (h *host) newRand() *rand.Rand {
	h.mu.Lock()
	defer h.mu.Unlock()
	return rand.New(rand.NewPCG(h.rand.Uint64(), h.rand.Uint64()))
}

// newID returns an identity for an engine, which no other engine is likely to have.
func (h *host) newID() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ids.Uint64()
}

// task is a function for an executor.
type task func()

// RunTurn calls the function.
func (t task) RunTurn() { t() }

// spawn runs f, which may block, on the executor for blocking actors, which Close waits for.
func (h *host) spawn(f func()) { h.system.Blocking().Submit(task(f)) }
