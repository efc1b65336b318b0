package explore

import (
	"math/rand/v2"
	"sync"

	"github.com/watchmill/watchmill/actors"
)

// maxThroughput bounds the messages of one turn. It is small so that turns of
// different actors interleave in many ways.
const maxThroughput = 8

// unlimited is a patience without end.
const unlimited = -1

// scheduler is the executor of one world. The seed decides whose turn is next.
//
// Other than [actors.Seeded] it may be run from inside a turn: a call that waits
// in a handler then runs the other actors meanwhile, on top of the handler's
// turn, which is itself not runnable again before it has ended.
type scheduler struct {
	trace *trace
	// patience is how many turns calls may yet wait for, idle is asked for more
	// when nothing is runnable, nil for no. Only the world sets them.
	patience int
	idle     func() bool
	// closing: nobody needs to go on early any more, so that Run runs all.
	closing bool
	// restless is how many turns there were since something last came from outside;
	// beyond maxRestless no more are run.
	restless int
	// swallow, if set, keeps a task from ever running. Only sabotage sets it.
	swallow func(actors.Task) bool

	mu    sync.Mutex // guards what follows; contended only if user code starts goroutines
	rng   *rand.Rand
	tasks []actors.Task
}

func newScheduler(seed uint64, t *trace) *scheduler {
	return &scheduler{trace: t, patience: unlimited, rng: rand.New(rand.NewPCG(seed, 0x2545f4914f6cdd1d))}
}

// Submit makes t runnable.
func (s *scheduler) Submit(t actors.Task) {
	if s.swallow != nil && s.swallow(t) {
		return
	}
	s.mu.Lock()
	s.tasks = append(s.tasks, t)
	s.mu.Unlock()
}

// SubmitAll makes the tasks runnable.
func (s *scheduler) SubmitAll(tasks []actors.Task) {
	for _, t := range tasks {
		s.Submit(t)
	}
}

// Throughput draws a number from 1 to 8.
func (s *scheduler) Throughput() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return 1 + s.rng.IntN(maxThroughput)
}

// Run runs one turn, so that a call that waits goes on as soon as its answer is
// there, with the rest of the engine in the middle of something. It returns how
// much happened.
func (s *scheduler) Run() int {
	switch {
	case s.closing:
		s.settle()
		return 0
	case s.patience == 0:
		return 0
	}
	if s.patience > 0 {
		s.patience--
	}
	if s.step() || s.idle != nil && s.idle() {
		return 1
	}
	return 0
}

// runN runs at most n turns.
func (s *scheduler) runN(n int) {
	for range n {
		if !s.step() {
			return
		}
	}
}

// settle runs turns until none is left.
func (s *scheduler) settle() {
	for s.step() {
	}
}

// maxRestless is more turns than the engine ever needs to come to rest.
const maxRestless = 100_000

// stuck reports whether actors keep each other busy for ever.
func (s *scheduler) stuck() bool { return s.restless >= maxRestless }

// step runs one turn, if there is one.
func (s *scheduler) step() bool {
	if s.stuck() {
		return false
	}
	t := s.draw()
	if t == nil {
		return false
	}
	s.restless++
	s.trace.turn(t)
	t.RunTurn()
	return true
}

// draw takes a runnable task at random; nil if there is none.
func (s *scheduler) draw() actors.Task {
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
