package actors

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
)

// Task is something that has a turn to run. In this package that is always an
// actor's mailbox, and one turn is one run of it: its system messages, then as
// many of its messages as the executor's Throughput allows.
//
// The turns of actors also have the methods ActorID() [ID] and String() string,
// the actor's name, for executors that report what they run.
//
// A Task is a pointer, so that queueing one does not allocate. RunTurn must
// not panic; turns of actors contain the panics of user code.
type Task interface{ RunTurn() }

// Executor runs turns. An actor has at most one turn submitted or running at
// any time, so an executor needs no bound of its own and the turns of one
// actor never overlap, whichever executor it is.
//
// All methods are safe for concurrent use.
type Executor interface {
	// Submit arranges for t.RunTurn to be called once. It never blocks and never
	// calls RunTurn itself.
	Submit(t Task)
	// SubmitAll submits several tasks at once, in order. It does not keep the
	// slice.
	SubmitAll(tasks []Task)
	// Throughput is the number of messages, at least 1, that one turn may handle
	// before it ends. It is called once per turn.
	Throughput() int
}

// DefaultThroughput is the Throughput of [Pool] and [Blocking]. It is large
// enough that the cost of queueing a turn (about 100 ns) hardly shows, and small
// enough that an actor with a flood of messages delays its neighbours by
// microseconds.
const DefaultThroughput = 64

// Blocking is an [Executor] that runs each turn on a goroutine of its own, for
// actors whose turns may block: on I/O, or in user code. An idle actor uses no
// goroutine on it either; a busy one costs about 500 ns more per turn than on a
// [Pool].
//
// The zero value is ready to use.
type Blocking struct {
	mu   sync.Mutex
	busy int
	idle chan struct{} // closed when busy falls to 0; made by the first Close
}

// NewBlocking returns a Blocking executor with no turns running.
func NewBlocking() *Blocking { return new(Blocking) }

// Throughput returns [DefaultThroughput].
func (b *Blocking) Throughput() int { return DefaultThroughput }

// Submit starts a goroutine that runs t.
func (b *Blocking) Submit(t Task) {
	b.mu.Lock()
	b.busy++
	b.mu.Unlock()
	go b.run(t)
}

// SubmitAll starts a goroutine for each task.
func (b *Blocking) SubmitAll(tasks []Task) {
	for _, t := range tasks {
		b.Submit(t)
	}
}

// Running returns the number of turns submitted and not yet ended.
func (b *Blocking) Running() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.busy
}

// Close waits until no turn is left. If ctx ends first, the error wraps
// [ErrStillRunning] and ctx's cause and says how many are left; Close may then
// be called again. A Submit after Close still runs.
func (b *Blocking) Close(ctx context.Context) error {
	drained := b.drained()
	select {
	case <-drained:
		return nil // though ctx may be done
	default:
	}
	select {
	case <-drained:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %d blocking turns: %w", ErrStillRunning, b.Running(), context.Cause(ctx))
	}
}

func (b *Blocking) run(t Task) {
	defer b.finish() // even if the turn ends its goroutine
	t.RunTurn()
}

func (b *Blocking) finish() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.busy--
	if b.busy == 0 && b.idle != nil {
		close(b.idle)
		b.idle = nil
	}
}

// drained returns a channel that is closed as soon as no turn is left.
func (b *Blocking) drained() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.busy == 0 {
		none := make(chan struct{})
		close(none)
		return none
	}
	if b.idle == nil {
		b.idle = make(chan struct{})
	}
	return b.idle
}

// maxSeededThroughput bounds the throughput that [Seeded] draws. It is small so
// that turns of different actors interleave in many ways.
const maxSeededThroughput = 8

// Seeded is an [Executor] that runs nothing by itself. Run runs the submitted
// turns one after the other on the caller's goroutine, in an order that the
// seed alone decides: the same program with the same seed is the same
// execution.
//
// Submit is safe from any goroutine, but with submissions that race with Run, or
// with each other, the order is no longer the seed's alone.
type Seeded struct {
	turn chan struct{} // holds a token while a turn runs

	mu    sync.Mutex
	rng   *rand.Rand
	tasks []Task
}

// NewSeeded returns an empty executor for the given seed.
func NewSeeded(seed uint64) *Seeded {
	return NewSeededBy(rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15)))
}

// NewSeededBy returns an empty executor that draws from r, which must not be
// used for anything else.
func NewSeededBy(r *rand.Rand) *Seeded {
	return &Seeded{turn: make(chan struct{}, 1), rng: r}
}

// Submit makes t runnable.
func (s *Seeded) Submit(t Task) {
	s.mu.Lock()
	s.tasks = append(s.tasks, t)
	s.mu.Unlock()
}

// SubmitAll makes the tasks runnable.
func (s *Seeded) SubmitAll(tasks []Task) {
	s.mu.Lock()
	s.tasks = append(s.tasks, tasks...)
	s.mu.Unlock()
}

// Throughput draws a number from 1 to 8.
func (s *Seeded) Throughput() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return 1 + s.rng.IntN(maxSeededThroughput)
}

// Pending returns the number of runnable turns.
func (s *Seeded) Pending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.tasks)
}

// Run runs turns until none is left and returns how many it ran. It does not
// return while actors keep each other busy; [Seeded.RunN] does. A call waits
// while another goroutine's turn runs. A call in a turn, as by a handler that waits,
// runs the turns of other actors, nested in that one.
func (s *Seeded) Run() int {
	ran := 0
	for s.step() {
		ran++
	}
	return ran
}

// RunN runs at most n turns and returns how many it ran: fewer than n only if
// none is left.
func (s *Seeded) RunN(n int) int {
	ran := 0
	for ran < n && s.step() {
		ran++
	}
	return ran
}

// drive runs turns until none is left or ctx ends. Unlike Run, it ends with ctx
// when it is called from a turn.
func (s *Seeded) drive(ctx context.Context) {
	for {
		select {
		case s.turn <- struct{}{}:
		case <-ctx.Done():
			return
		}
		if !s.runDrawn() {
			return
		}
	}
}

// step runs one turn, if there is one.
func (s *Seeded) step() bool {
	select {
	case s.turn <- struct{}{}:
	default:
		if InTurn() {
			return s.runNext() // the turn around this one holds the token
		}
		s.turn <- struct{}{}
	}
	return s.runDrawn()
}

// runDrawn is runNext that gives the token back.
func (s *Seeded) runDrawn() bool {
	defer func() { <-s.turn }()
	return s.runNext()
}

// runNext runs one turn, if there is one.
func (s *Seeded) runNext() bool {
	t := s.Draw()
	if t == nil {
		return false
	}
	t.RunTurn()
	return true
}

// Draw takes the turn that comes next without running it; nil if none is
// runnable. It is for executors that are made of this one and do more with a
// turn than run it: they must run each turn that they draw, one at a time.
func (s *Seeded) Draw() Task {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.tasks) - 1
	if last < 0 {
		return nil
	}
	i := s.rng.IntN(last + 1)
	t := s.tasks[i]
	s.tasks[i], s.tasks[last] = s.tasks[last], nil
	s.tasks = s.tasks[:last]
	return t
}
