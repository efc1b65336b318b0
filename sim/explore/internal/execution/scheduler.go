package execution

import (
	"math/rand/v2"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/sim/explore/script"
)

// Scheduler is the executor of one world: an [actors.Seeded] that also traces turns, delays
// a slow actor and limits how long calls wait. The seed decides which turn is next.
//
// Unlike an actors.Seeded it may be run from inside a turn: a call that waits in a handler
// runs the turns of other actors meanwhile, nested in the handler's turn. The handler's own
// actor has no other turn before that one has ended.
type Scheduler struct {
	*actors.Seeded
	trace *Trace
	// Waiting is how the call under way waits.
	Waiting
	// slow is an actor whose turns run only when no other actor has one; zero: there is
	// none. late is its turn that waits; nil if none does.
	slow actors.ID
	late actors.Task
	// unclaimed is the goroutine of a channel that was submitted last, until [NewChannel]
	// takes it.
	unclaimed *lockstep
	// running is the goroutine of the channel that is received from; nil while none is.
	running *lockstep
	// depth is how many turns are under way, each nested in the one before.
	depth int
	// Closing: no call waits for an answer any more, so Run runs all turns.
	Closing bool
	// turnsInStep is how many turns have run since the current step began; from MaxTurnsInStep
	// on no more are run.
	turnsInStep int
	// Ran, if set, is called after each turn.
	Ran func()
	// Lost, if set, reports that a submitted turn is dropped, so that its actor never
	// runs again. Only sabotage sets it.
	Lost func(actors.Task) bool
}

// Waiting is how a call waits.
type Waiting struct {
	// Patience is how many more turns the call may wait for, or [script.Unlimited]. Idle,
	// if not nil, is called when no turn is runnable, and reports whether the call may go on
	// waiting, since time has passed.
	Patience int
	Idle     func() bool
	// Meanwhile, if not nil, is called once, when the call has waited for the number of
	// turns in After.
	Meanwhile func()
	After     int
}

// Patient lets a call wait for all turns that there are.
var Patient = Waiting{Patience: script.Unlimited}

// NewScheduler returns the scheduler whose turns the seed decides.
func NewScheduler(seed uint64, t *Trace) *Scheduler {
	r := rand.New(rand.NewPCG(seed, 0x2545f4914f6cdd1d))
	return &Scheduler{Seeded: actors.NewSeededBy(r), trace: t, Waiting: Patient}
}

// Submit makes a turn runnable. A task that is not the turn of an actor may block, so it is
// kept for the world to run in lockstep: see [NewChannel].
func (s *Scheduler) Submit(t actors.Task) {
	if _, turn := t.(interface{ ActorID() actors.ID }); !turn {
		s.unclaimed = newLockstep(t)
		return
	}
	s.Seeded.Submit(t)
}

// Run runs one turn, so that a call that waits continues as soon as it has its answer,
// while the rest of the engine still has turns. It returns 1 if it has run something, and 0
// if the caller must stop waiting.
func (s *Scheduler) Run() int {
	switch {
	case s.running != nil: // the goroutine behind a channel waits, and not the world
		s.running.pause()
		return 1
	case s.Closing:
		s.Settle()
		return 0
	case s.Patience == 0:
		return 0
	}
	if s.Patience > 0 {
		s.Patience--
	}
	s.After--
	switch {
	case s.After < 0 && s.interrupt():
	case s.run(s.drawOther()):
	case s.interrupt(): // only the slow actor has a turn, if any has
	case s.step():
	case s.Idle != nil && s.Idle():
	default:
		return 0
	}
	return 1
}

// Wait makes a call that waits as how says. If its meanwhile has not been called when the
// call returns, it is called then, and may wait as the call before may.
func (s *Scheduler) Wait(how Waiting, call func()) {
	outer := s.Waiting
	s.Waiting = how
	call()
	late := s.Meanwhile
	s.Waiting = outer
	if late != nil {
		late()
	}
}

// MayWait reports whether the call that is under way may wait for turns that are left.
// Within a turn that is unknown: the patience is that of the step's call.
func (s *Scheduler) MayWait() bool {
	return s.depth == 0 && s.Patience == script.Unlimited && s.HasTurns()
}

// InTurn reports whether a turn is under way, such as that of a handler whose call waits.
func (s *Scheduler) InTurn() bool { return s.depth > 0 }

// HasTurns reports whether there are turns to wait for.
func (s *Scheduler) HasTurns() bool { return s.Pending() > 0 && !s.Stuck() }

// BeginStep begins another step, which may take turns anew.
func (s *Scheduler) BeginStep() { s.turnsInStep = 0 }

// interrupt calls meanwhile, if there is one, and reports whether it did. It does nothing
// inside a turn, where the call that waits is that of a handler and not the step's.
func (s *Scheduler) interrupt() bool {
	if s.Meanwhile == nil || s.depth > 0 {
		return false
	}
	call := s.Waiting
	s.Waiting = Patient
	call.Meanwhile()
	s.Waiting, s.Meanwhile = call, nil
	return true
}

// RunTurns runs at most n turns.
func (s *Scheduler) RunTurns(n int) {
	for range n {
		if !s.step() {
			return
		}
	}
}

// Settle runs turns until none is left.
func (s *Scheduler) Settle() {
	for s.step() {
	}
}

// MaxTurnsInStep is a number of turns that an engine without a defect never needs to come to
// rest.
const MaxTurnsInStep = 100_000

// Stuck reports whether the step has taken so many turns that the actors must be keeping
// each other busy for ever.
func (s *Scheduler) Stuck() bool { return s.turnsInStep >= MaxTurnsInStep }

// step runs one turn, if there is one.
func (s *Scheduler) step() bool { return s.run(s.draw()) }

// SettleOthers runs turns until only the slow actor has any.
func (s *Scheduler) SettleOthers() {
	for s.run(s.drawOther()) {
	}
}

// MakeSlow makes one actor slow, and no other: zero is none.
func (s *Scheduler) MakeSlow(id actors.ID) {
	s.EndSlowness()
	s.slow = id
}

// EndSlowness ends the slowness of the slow actor, and submits its turn that waits.
func (s *Scheduler) EndSlowness() {
	s.slow = 0
	if s.late != nil {
		s.Submit(s.late)
		s.late = nil
	}
}

func (s *Scheduler) run(t actors.Task) bool {
	if t == nil {
		return false
	}
	s.turnsInStep++
	s.trace.turn(t)
	if s.Lost != nil && s.Lost(t) {
		return true
	}
	s.depth++
	t.RunTurn()
	s.depth--
	if s.Ran != nil {
		s.Ran()
	}
	return true
}

// draw takes the next turn: the slow actor's if there is no other.
func (s *Scheduler) draw() actors.Task {
	t := s.drawOther()
	if t == nil && !s.Stuck() {
		t, s.late = s.late, nil
	}
	return t
}

// drawOther takes the next turn of an actor that is not slow.
func (s *Scheduler) drawOther() actors.Task {
	if s.Stuck() {
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
