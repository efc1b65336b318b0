package actors

import (
	"context"
	"math/rand/v2"
	"sync"
)

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

// Run runs turns until none is left and returns how many it ran. It does not return
// while actors keep each other busy; [Seeded.RunN] does. A call waits while another
// goroutine's turn runs. A call in a turn, for example by a handler that waits, runs
// the turns of other actors, nested in that one; in a turn of another system it does
// not wait, so that turns of two actors may overlap.
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
	for ctx.Err() == nil { // first: of two cases that are ready select takes any
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
