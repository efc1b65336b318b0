package storage

import (
	"context"
	"errors"
	"math/rand/v2"

	"github.com/watchmill/watchmill/sim/explore/script"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/faulty"
)

// A write may be left without an answer, by which its caller does not know whether it was done. The history does.
//
//	engine ── write ──▶ loseAnswer ──┬─ done at once ───────────▶ memory, history
//	       ◀─ UncertainError ────────┼─ done some steps later ──▶ memory, history, unless another write came first
//	                                 └─ never done

// errUnanswered is the cause of the error of a write without an answer.
var errUnanswered = errors.New("the answer of storage was lost")

// Unanswered is a write that storage has left without an answer.
type Unanswered[T any] struct {
	// Kind is [store.Added] for a value that was to be stored, otherwise [store.Deleted] or [store.Emitted].
	Kind store.EventType
	Key  string
	// Value is what was to be stored or emitted; nil for a deletion.
	Value *T
	// Revision is that of the change if it was done at once, otherwise zero.
	Revision store.Revision
}

// lateWrite is a write without an answer that is done when so many more steps have begun.
type lateWrite struct {
	faulty.Call
	steps int
}

// maxLate is the most steps after which a write without an answer is done.
const maxLate = 6

// loseAnswers leaves the next writes without an answer. The seed of the step decides which of them are done.
func (s *Storage[T]) loseAnswers(step script.Step) {
	draw := rand.New(rand.NewPCG(step.Seed, 12))
	s.inject(script.LoseAnswers, faulty.Rule{Ops: faulty.Writes, Times: step.N, Do: func(_ context.Context, c *faulty.Call, proceed func()) {
		s.loseAnswer(draw, c, proceed)
	}})
}

// loseAnswer leaves a write without an answer. One that storage refuses at once has its answer.
func (s *Storage[T]) loseAnswer(draw *rand.Rand, c *faulty.Call, proceed func()) {
	lost := Unanswered[T]{Kind: kindOf(c.Op), Key: c.Key}
	if c.Draft != nil {
		c.Draft = s.Schema.Clone(c.Draft) // which stays the caller's
		value := s.value(c.Draft)
		lost.Value = &value
	}
	switch draw.IntN(3) {
	case 0:
		if proceed(); c.Err != nil {
			c.Spare()
			return
		}
		s.recordWrite(c)
		lost.Revision = s.History.Newest()
	case 1:
		write := faulty.Call{Op: c.Op, Key: c.Key, Draft: c.Draft, Prev: c.Prev, PutOptions: c.PutOptions}
		s.late = append(s.late, &lateWrite{write, 1 + draw.IntN(maxLate)})
	}
	c.Err = &backend.UncertainError{Verb: c.Op.String(), Key: c.Key, Cause: errUnanswered}
	s.Unanswered = append(s.Unanswered, lost)
	s.trace.Call("leave unanswered", lost.Revision, 0, c.Err)
}

// kindOf returns the kind of change that an operation makes.
func kindOf(op faulty.Op) store.EventType {
	switch op {
	case faulty.OpRemove:
		return store.Deleted
	case faulty.OpEmit:
		return store.Emitted
	}
	return store.Added
}

// BeginStep does the writes without an answer whose time has come.
func (s *Storage[T]) BeginStep() {
	for _, l := range s.late {
		l.steps--
	}
	for len(s.late) > 0 && s.late[0].steps <= 0 { // in the order in which they were made
		s.doFirstLate()
	}
}

// doAllLate does all writes without an answer that are still to be done.
func (s *Storage[T]) doAllLate() {
	for len(s.late) > 0 {
		s.doFirstLate()
	}
}

// doFirstLate does the first of the writes that are still to be done, unless there was another write of its object since.
func (s *Storage[T]) doFirstLate() {
	c := &s.late[0].Call
	s.late = s.late[1:]
	ctx, b := context.Background(), s.Unwrap()
	switch c.Op {
	case faulty.OpPut:
		c.Object, c.Err = b.Put(ctx, c.Draft, c.Prev, c.PutOptions)
	case faulty.OpRemove:
		c.Object, c.Err = b.Remove(ctx, c.Prev)
	case faulty.OpEmit:
		c.Object, c.Err = b.(backend.Emitter).Emit(ctx, c.Draft)
	}
	if c.Err == nil {
		s.recordWrite(c)
	} else if !overtaken(c.Err) {
		s.Fail(judge.Failed(judge.Refusals, "storage", "a late %v of %q: %v", c.Op, c.Key, c.Err))
	}
	s.trace.Call("late "+c.Op.String(), s.History.Newest(), 0, c.Err)
}

// overtaken reports whether a write has failed since there was another one of its object.
func overtaken(err error) bool {
	return errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrExists)
}
