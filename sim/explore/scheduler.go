package explore

import (
	"math/rand/v2"

	"github.com/watchmill/watchmill/actors"
)

// unlimited is a patience that does not run out.
const unlimited = -1

// scheduler is the executor of one world: an [actors.Seeded] that does more with
// a turn than run it. The seed decides whose turn is next.
//
// Other than that it may be run from inside a turn: a call that waits in a
// handler then runs the other actors meanwhile, on top of the handler's turn,
// which is itself not runnable again before it has ended.
type scheduler struct {
	*actors.Seeded
	trace *trace
	// waiting is how calls wait. Only the world sets it.
	waiting
	// slow is an actor whose turns run only when no other actor has one, and late
	// the one that it waits for.
	slow actors.ID
	late actors.Task
	// function is the last submitted task that is not an actor's turn, and stepping the
	// one of that kind that is running.
	function, stepping *lockstep
	// depth is how many turns are under way, one on top of the other.
	depth int
	// closing: no call needs to return early any more, so Run runs everything.
	closing bool
	// restless is how many turns there were since something last came from outside;
	// beyond maxRestless no more are run.
	restless int
	// lost, if set, reports that a submitted turn is dropped, so that its actor never
	// runs again. Only sabotage sets it.
	lost func(actors.Task) bool
}

// waiting is how a call waits.
type waiting struct {
	// patience is how many turns it may yet wait for; idle is asked for more when
	// nothing is runnable, nil for no.
	patience int
	idle     func() bool
	// meanwhile, if not nil, is called once, when the call has waited for so many
	// turns.
	meanwhile func()
	after     int
}

// patient waits for all turns that there are.
var patient = waiting{patience: unlimited}

func newScheduler(seed uint64, t *trace) *scheduler {
	r := rand.New(rand.NewPCG(seed, 0x2545f4914f6cdd1d))
	return &scheduler{Seeded: actors.NewSeededBy(r), trace: t, waiting: patient}
}

// Submit makes a turn runnable. What is not the turn of an actor may wait, and is kept
// for the world to run.
func (s *scheduler) Submit(t actors.Task) {
	if _, turn := t.(interface{ ActorID() actors.ID }); !turn {
		s.function = newLockstep(t)
		return
	}
	s.Seeded.Submit(t)
}

// Run runs one turn, so that a call that waits goes on as soon as its answer is
// there, with the rest of the engine in the middle of something. It returns how
// much happened.
func (s *scheduler) Run() int {
	switch {
	case s.stepping != nil: // it is not the world that waits
		s.stepping.pause()
		return 1
	case s.closing:
		s.settle()
		return 0
	case s.patience == 0:
		return 0
	}
	if s.patience > 0 {
		s.patience--
	}
	s.after--
	if s.after < 0 && s.interrupt() || s.run(s.drawOther()) || s.interrupt() || s.step() || s.idle != nil && s.idle() {
		return 1
	}
	return 0
}

// interrupt calls meanwhile, if there is one, and reports whether it did. That a
// handler waits, in the middle of the call, is no time for it.
func (s *scheduler) interrupt() bool {
	if s.meanwhile == nil || s.depth > 0 {
		return false
	}
	call := s.waiting
	s.waiting = patient
	call.meanwhile()
	s.waiting, s.meanwhile = call, nil
	return true
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
func (s *scheduler) step() bool { return s.run(s.draw()) }

// settleOthers runs turns until only the slow actor has any.
func (s *scheduler) settleOthers() {
	for s.run(s.drawOther()) {
	}
}

// hurry has no actor be slow any more.
func (s *scheduler) hurry() {
	s.slow = 0
	if s.late != nil {
		s.Submit(s.late)
		s.late = nil
	}
}

func (s *scheduler) run(t actors.Task) bool {
	if t == nil {
		return false
	}
	s.restless++
	s.trace.turn(t)
	if s.lost != nil && s.lost(t) {
		return true
	}
	s.depth++
	t.RunTurn()
	s.depth--
	return true
}

// draw takes the turn that comes next: the slow actor's if it is the only one.
func (s *scheduler) draw() actors.Task {
	t := s.drawOther()
	if t == nil && !s.stuck() {
		t, s.late = s.late, nil
	}
	return t
}

// drawOther takes the turn that comes next, but for the slow actor's.
func (s *scheduler) drawOther() actors.Task {
	if s.stuck() {
		return nil
	}
	t := s.Draw()
	if t != nil && s.slow != 0 && actorOf(t) == s.slow {
		s.late = t // an actor has one turn at most
		t = s.Draw()
	}
	return t
}

// actorOf returns whose turn t is.
func actorOf(t actors.Task) actors.ID {
	if a, ok := t.(interface{ ActorID() actors.ID }); ok {
		return a.ActorID()
	}
	return 0
}
