package explore

import (
	"math/rand/v2"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/sim/explore/script"
)

// scheduler is the executor of one world: an [actors.Seeded] that also traces turns, delays
// a slow actor and limits how long calls wait. The seed decides which turn is next.
//
// Unlike an actors.Seeded it may be run from inside a turn: a call that waits in a handler
// runs the turns of other actors meanwhile, nested in the handler's turn. The handler's own
// actor has no other turn before that one has ended.
type scheduler struct {
	*actors.Seeded
	trace *trace
	// waiting is how the call under way waits. Only the world sets it.
	waiting
	// slow is an actor whose turns run only when no other actor has one; zero: there is
	// none. late is its turn that waits; nil if none does.
	slow actors.ID
	late actors.Task
	// function is the last submitted task that is not an actor's turn, and stepping the
	// one of that kind that is running.
	function, stepping *lockstep
	// depth is how many turns are under way, each nested in the one before.
	depth int
	// closing: no call waits for an answer any more, so Run runs all turns.
	closing bool
	// turnsInStep is how many turns have run since the current step began; from maxTurnsInStep
	// on no more are run.
	turnsInStep int
	// lost, if set, reports that a submitted turn is dropped, so that its actor never
	// runs again. Only sabotage sets it.
	lost func(actors.Task) bool
}

// waiting is how a call waits.
type waiting struct {
	// patience is how many more turns the call may wait for, or unlimited. idle, if not
	// nil, is called when no turn is runnable, and reports whether the call may go on
	// waiting, since time has passed.
	patience int
	idle     func() bool
	// meanwhile, if not nil, is called once, when the call has waited for the number of
	// turns in after.
	meanwhile func()
	after     int
}

// patient lets a call wait for all turns that there are.
var patient = waiting{patience: script.Unlimited}

func newScheduler(seed uint64, t *trace) *scheduler {
	r := rand.New(rand.NewPCG(seed, 0x2545f4914f6cdd1d))
	return &scheduler{Seeded: actors.NewSeededBy(r), trace: t, waiting: patient}
}

// Submit makes a turn runnable. A task that is not the turn of an actor may block, so it is
// kept for the world to run in lockstep: see channelOf.
func (s *scheduler) Submit(t actors.Task) {
	if _, turn := t.(interface{ ActorID() actors.ID }); !turn {
		s.function = newLockstep(t)
		return
	}
	s.Seeded.Submit(t)
}

// Run runs one turn, so that a call that waits continues as soon as it has its answer,
// while the rest of the engine still has turns. It returns 1 if it has run something, and 0
// if the caller must stop waiting.
func (s *scheduler) Run() int {
	switch {
	case s.stepping != nil: // the goroutine behind a channel waits, and not the world
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

// interrupt calls meanwhile, if there is one, and reports whether it did. It does nothing
// inside a turn, where the call that waits is that of a handler and not the step's.
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

// maxTurnsInStep is a number of turns that an engine without a defect never needs to come to
// rest.
const maxTurnsInStep = 100_000

// stuck reports whether the step has taken so many turns that the actors must be keeping
// each other busy for ever.
func (s *scheduler) stuck() bool { return s.turnsInStep >= maxTurnsInStep }

// step runs one turn, if there is one.
func (s *scheduler) step() bool { return s.run(s.draw()) }

// settleOthers runs turns until only the slow actor has any.
func (s *scheduler) settleOthers() {
	for s.run(s.drawOther()) {
	}
}

// endSlowness ends the slowness of the slow actor, and submits its turn that waits.
func (s *scheduler) endSlowness() {
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
	s.turnsInStep++
	s.trace.turn(t)
	if s.lost != nil && s.lost(t) {
		return true
	}
	s.depth++
	t.RunTurn()
	s.depth--
	return true
}

// draw takes the next turn: the slow actor's if there is no other.
func (s *scheduler) draw() actors.Task {
	t := s.drawOther()
	if t == nil && !s.stuck() {
		t, s.late = s.late, nil
	}
	return t
}

// drawOther takes the next turn of an actor that is not slow.
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

// actorOf returns the actor whose turn t is, zero if it is not an actor's.
func actorOf(t actors.Task) actors.ID {
	if a, ok := t.(interface{ ActorID() actors.ID }); ok {
		return a.ActorID()
	}
	return 0
}
