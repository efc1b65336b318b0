package actors

import (
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
)

// SystemConfig says how a System runs. The zero value is ready to use.
type SystemConfig struct {
	// Workers is the number of workers of the pool; zero means GOMAXPROCS.
	Workers int
	// Clock is where time comes from; nil means [RealClock].
	Clock Clock
	// Logger gets contained failures, at level Error. Nil means slog.Default.
	Logger *slog.Logger
	// Executor, if set, runs all actors in place of the pool and the blocking
	// executor. It is the caller's to close. With [Seeded] and a [VirtualClock],
	// the system is deterministic.
	Executor Executor
	// OnFailure is told of every panic of user code that was contained, after
	// the directive has been decided. It is called in a turn, of any actor, and
	// must not block.
	OnFailure func(Failure)
}

func (cfg SystemConfig) validate() error {
	switch {
	case cfg.Workers < 0:
		return &ConfigError{"SystemConfig.Workers", "is negative: use 0 for GOMAXPROCS, or the number of workers"}
	case cfg.Workers > 0 && cfg.Executor != nil:
		return &ConfigError{"SystemConfig.Workers", "has no effect with SystemConfig.Executor: set one of the two"}
	}
	return nil
}

// System is a set of actors, the executors that run them and the clock that
// they go by. It costs about 30 KB, most of it protoactor's registry. All
// methods are safe for concurrent use.
type System struct {
	proto     *actor.ActorSystem
	pool      Executor
	blocking  Executor
	owned     executors
	clock     *countedClock
	logger    *slog.Logger
	onFailure func(Failure)

	top  *Ref[adoption] // the parent of all that are spawned on the System
	gone chan struct{}  // closed when the top actor has stopped

	lastID atomic.Uint64
	live   atomic.Int64 // actors, without the top one

	mu    sync.Mutex
	named map[*cell]struct{} // the live actors that have queues, likewise

	shutdown sync.Once
}

// executors are those that the system made and must close; nil if it was given
// one.
type executors struct {
	pool     *Pool
	blocking *Blocking
}

// NewSystem starts a system without actors. Close it to end it. The error, if
// any, is a [*ConfigError].
func NewSystem(cfg SystemConfig) (*System, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	s := &System{
		proto:     newActorSystem(),
		logger:    cfg.Logger,
		onFailure: cfg.OnFailure,
		gone:      make(chan struct{}),
		named:     make(map[*cell]struct{}),
	}
	if s.logger == nil {
		s.logger = slog.Default()
	}
	s.clock = newCountedClock(cfg.Clock, s.timerFailed)
	s.openExecutors(cfg)
	s.spawnTop()
	return s, nil
}

func (s *System) openExecutors(cfg SystemConfig) {
	if cfg.Executor != nil {
		s.pool, s.blocking = cfg.Executor, cfg.Executor
		return
	}
	s.owned = executors{NewPool(cfg.Workers), NewBlocking()}
	s.pool, s.blocking = s.owned.pool, s.owned.blocking
}

// Pool returns the executor for actors that do not block.
func (s *System) Pool() Executor { return s.pool }

// Blocking returns the executor for actors that may block.
func (s *System) Blocking() Executor { return s.blocking }

// Clock returns the clock, wrapped so that [System.Timers] counts its timers
// and panics in their functions are contained.
func (s *System) Clock() Clock { return s.clock }

// Logger returns the logger.
func (s *System) Logger() *slog.Logger { return s.logger }

// Actors returns the number of actors that have been spawned and are not gone:
// the leaks that no count of goroutines shows.
func (s *System) Actors() int { return int(s.live.Load()) }

// Timers returns the number of timers armed through Clock that have neither
// fired nor been stopped. Close does not stop them: one that is left is a leak
// of the actor that armed it.
func (s *System) Timers() int { return int(s.clock.armed.Load()) }

func (s *System) nextID() ID { return ID(s.lastID.Add(1)) }

// arrived counts a new actor with a queue.
func (s *System) arrived(c *cell) {
	s.live.Add(1)
	s.mu.Lock()
	s.named[c] = struct{}{}
	s.mu.Unlock()
}

// departed uncounts an actor that is gone.
func (s *System) departed(c *cell) {
	if c == &s.top.queue.cell {
		return
	}
	s.live.Add(-1)
	if c.origin.shared() {
		c.origin.above.wakers.Add(-1)
		return
	}
	s.mu.Lock()
	delete(s.named, c)
	s.mu.Unlock()
}

// report makes a failure known.
func (s *System) report(f *Failure) {
	s.logger.Error("actor failed", "actor", f.Actor, "id", f.ID, "reason", f.Reason,
		"directive", f.Directive, "stack", string(f.Stack))
	if s.onFailure == nil {
		return
	}
	var done bool
	defer contain(&done, func(reason any, stack []byte) {
		s.logger.Error("OnFailure failed", "reason", reason, "stack", string(stack))
	})
	s.onFailure(*f)
	done = true
}

func (s *System) timerFailed(reason any, stack []byte) {
	s.report(&Failure{Actor: "timer", Reason: reason, Stack: stack, Directive: Resume})
}
