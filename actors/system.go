package actors

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/usercode"
)

// MaxWorkers is the most workers of a pool. A worker is for a processor, not for turns that wait.
const MaxWorkers = 10_000

// SystemConfig configures a System. The zero value is ready to use.
type SystemConfig struct {
	// Workers is the number of workers of the pool, at most [MaxWorkers]; zero means GOMAXPROCS.
	Workers int
	// Clock is the source of time; nil means [clock.Real].
	Clock clock.Clock
	// Logger gets contained failures, at level Error, and turns that hold a worker
	// of the pool for longer than a second, at level Warn. Nil means slog.Default. A panic
	// of its handler is contained: the line is lost, and OnFailure is called.
	Logger *slog.Logger
	// Executor, if set, runs all actors in place of the pool and the blocking
	// executor. The caller closes it. With [Seeded] and a [clock.Virtual], the
	// system is deterministic.
	Executor Executor
	// OnFailure is called for every panic of user code that was contained, after
	// the directive has been decided, and once for each turn that holds a worker
	// of the pool for longer than a second of the Clock, while it does (see
	// [ErrWorkerHeld]). It is called in a turn, of any actor, or by the clock, and must
	// not block.
	OnFailure func(Failure)
}

// validate returns a [*usercode.ConfigError] for the first field that is wrong.
func (c SystemConfig) validate() error {
	switch {
	case c.Workers < 0:
		return &usercode.ConfigError{Field: "Workers", Problem: "is negative; use 0 for GOMAXPROCS, or the number of workers"}
	case c.Workers > MaxWorkers:
		return &usercode.ConfigError{Field: "Workers", Problem: fmt.Sprintf("is %d; give at most %d, or 0 for GOMAXPROCS", c.Workers, MaxWorkers)}
	case c.Workers > 0 && c.Executor != nil:
		return &usercode.ConfigError{Field: "Workers", Problem: "has no effect with Executor; set one of the two"}
	}
	return nil
}

// System is a set of actors, the executors that run them and the clock that
// they use. It takes about 30 KB, most of it protoactor's registry. All methods
// are safe for concurrent use.
type System struct {
	proto     *actor.ActorSystem
	pool      Executor
	blocking  Executor
	owned     executors
	clock     *countedClock
	logger    *slog.Logger
	onFailure func(Failure)

	root    *Ref[spawnRequest] // the parent of all that are spawned on the System
	stopped chan struct{}      // closed when the root actor has stopped

	lastID atomic.Uint64
	live   atomic.Int64 // actors, without the root

	mu     sync.Mutex
	named  map[*cell]struct{} // the live actors that have queues, without the root
	ending map[*cell]struct{} // those that are not counted any more, but are in their Stopped

	shutdown sync.Once
	closed   chan struct{} // closed when Close has done everything
	later    sync.Once     // guards the goroutine that goes on with a Close in a turn
}

// executors are those that the system made and must close; nil if it was given
// one.
type executors struct {
	pool     *Pool
	blocking *Blocking
}

// NewSystem starts a system without actors. Close it to end it. The error, if
// any, is a [*usercode.ConfigError].
func NewSystem(cfg SystemConfig) (*System, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	s := &System{
		proto:     newActorSystem(),
		onFailure: cfg.OnFailure,
		stopped:   make(chan struct{}),
		closed:    make(chan struct{}),
		named:     make(map[*cell]struct{}),
		ending:    make(map[*cell]struct{}),
	}
	s.logger = usercode.Logger(cmp.Or(cfg.Logger, slog.Default()), s.loggerFailed)
	s.clock = newCountedClock(cfg.Clock, s.timerFailed)
	s.openExecutors(cfg)
	s.spawnRoot()
	return s, nil
}

func (s *System) openExecutors(cfg SystemConfig) {
	if cfg.Executor != nil {
		s.pool, s.blocking = cfg.Executor, cfg.Executor
		return
	}
	s.owned = executors{NewPool(cfg.Workers), NewBlocking()}
	s.owned.pool.watch(s.clock.Clock, s.workerHeld, s.timerFailed)
	s.pool, s.blocking = s.owned.pool, s.owned.blocking
}

// Pool returns the executor for actors that do not block.
func (s *System) Pool() Executor { return s.pool }

// Held returns a channel that is closed while a wait for an actor of the pool may be long: as
// [Pool.Held] says or, with an executor that was given, always.
func (s *System) Held() <-chan struct{} {
	if s.owned.pool == nil {
		return alwaysHeld
	}
	return s.owned.pool.Held()
}

// alwaysHeld is closed.
var alwaysHeld = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Stopped returns a channel that is closed when Close has been called and the last actor
// has stopped. An actor that was spawned too late for that does not start.
func (s *System) Stopped() <-chan struct{} { return s.stopped }

// Blocking returns the executor for actors that may block.
func (s *System) Blocking() Executor { return s.blocking }

// Clock returns the clock, wrapped so that [System.Timers] counts its timers
// and panics in their functions are contained.
func (s *System) Clock() clock.Clock { return s.clock }

// Logger returns the logger. It contains panics of its handler.
func (s *System) Logger() *slog.Logger { return s.logger }

// Actors returns the number of actors that have been spawned and have not
// stopped. A leaked actor shows here but not in a count of goroutines.
func (s *System) Actors() int { return int(s.live.Load()) }

// Timers returns the number of timers armed through Clock that have neither
// fired nor been stopped. Close does not stop them: a timer that remains is a
// leak of the actor that armed it.
func (s *System) Timers() int { return int(s.clock.armed.Load()) }

// Names returns the names, sorted, of the actors that are alive. Wake actors
// have none: one last entry says how many there are.
func (s *System) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make([]string, 0, len(s.named)+1)
	for c := range s.named {
		names = append(names, c.name())
	}
	slices.Sort(names)
	if wakers := s.Actors() - len(names); wakers > 0 {
		names = append(names, fmt.Sprintf("%d wake actors", wakers))
	}
	return names
}

func (s *System) nextID() ID { return ID(s.lastID.Add(1)) }

func (s *System) isRoot(c *cell) bool { return c == &s.root.queue.cell }

// count counts a new actor with a queue.
func (s *System) count(c *cell) {
	s.live.Add(1)
	s.mu.Lock()
	s.named[c] = struct{}{}
	s.mu.Unlock()
}

// uncount uncounts an actor that has stopped.
func (s *System) uncount(c *cell) {
	if s.isRoot(c) {
		return
	}
	s.live.Add(-1)
	if c.spec.shared() {
		c.spec.siblings.parent.spec.wakers.Add(-1)
		return
	}
	s.mu.Lock()
	delete(s.named, c)
	s.mu.Unlock()
}

// inStopped records that an actor with a queue is in its Stopped, until over is called.
func (s *System) inStopped(c *cell) (over func()) {
	if s.isRoot(c) || c.spec.shared() {
		return func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ending[c] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.ending, c)
	}
}

// report logs a failure and calls OnFailure, even if the logger ends the goroutine.
func (s *System) report(f *Failure) {
	defer s.notify(f)
	s.logger.Error("actor failed", "actor", f.Actor, "id", f.ID, "reason", f.Reason,
		"directive", f.Directive, "stack", string(f.Stack))
}

// notify calls OnFailure.
func (s *System) notify(f *Failure) {
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

// loggerFailed calls OnFailure about the logger, which is not told of it.
func (s *System) loggerFailed(panicked *usercode.PanicError) {
	if s.onFailure == nil {
		return
	}
	f := Failure{Actor: "logger", Reason: panicked.Value, Stack: panicked.Stack, Directive: Resume}
	_ = usercode.Call("OnFailure", "", func() { s.onFailure(f) })
}

// workerHeld reports a turn that holds a worker of the pool.
func (s *System) workerHeld(turn *mailbox) {
	f := &Failure{Actor: (*cell)(turn).title(), ID: turn.id, Reason: ErrWorkerHeld, Directive: Resume}
	defer s.notify(f)
	s.logger.Warn("turn holds a worker of the pool", "actor", f.Actor, "id", f.ID, "limit", turnLimit)
}
