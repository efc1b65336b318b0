package storage

import (
	"context"
	"maps"
	"slices"

	"github.com/watchmill/watchmill/sim/explore/script"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend/faulty"
)

// Disturb performs a step that injects a fault, ends one, or compacts.
func (s *Storage[T]) Disturb(step script.Step) error {
	s.Disturbed = true
	next, lists := []faulty.Op{faulty.OpNext}, []faulty.Op{faulty.OpList}
	switch step.Do {
	case script.Hangup:
		s.BreakWatches(store.ErrClosed)
	case script.Outage:
		s.BreakWatches(ErrOutage)
	case script.Expire:
		s.BreakWatches(ErrExpired)
	case script.Lose:
		s.inject(script.Lose, faulty.Rule{Ops: next, Times: 1, Do: faulty.LoseEvent()})
	case script.Repeat:
		s.inject(script.Repeat, faulty.Rule{Ops: next, Times: 1, Do: faulty.RepeatEvent()})
	case script.FailLists:
		s.inject(script.FailLists, faulty.Rule{Ops: lists, Times: step.N, Do: failing(&s.FailedLists)})
		s.BreakWatches(ErrExpired)
	case script.FailWatches:
		s.inject(script.FailWatches, faulty.Rule{Ops: []faulty.Op{faulty.OpWatch}, Times: step.N, Do: faulty.Fail(ErrOutage)})
		s.BreakWatches(ErrOutage)
	case script.FailCalls:
		s.inject(script.FailCalls, faulty.Rule{Ops: singleCalls, Times: step.N, Do: failing(&s.FailedCalls)})
	case script.LoseAnswers:
		s.loseAnswers(step)
	case script.SlowLists:
		if s.blocks {
			s.inject(script.SlowLists, faulty.Rule{Ops: lists, Times: step.N, Do: faulty.After(s.delayed)})
		}
		s.BreakWatches(ErrExpired)
	case script.Block:
		s.inject(script.Block, faulty.Rule{Ops: next, Do: faulty.Hang()})
	case script.Unblock:
		s.unblock()
	case script.Compact:
		return s.Unwrap().Compact(context.Background(), s.Back(step.N))
	}
	return nil
}

// singleCalls are the operations that FailCalls makes fail.
var singleCalls = []faulty.Op{faulty.OpGet, faulty.OpPut, faulty.OpRemove, faulty.OpEmit, faulty.OpRevision, faulty.OpCompact}

// failing makes calls fail before they have an effect, and counts them.
func failing(count *uint64) func(context.Context, *faulty.Call, func()) {
	return func(_ context.Context, c *faulty.Call, _ func()) {
		*count++
		c.Err = ErrOutage
	}
}

// Back returns the revision n before the newest, and at least the first.
func (s *Storage[T]) Back(n int) store.Revision {
	return store.Revision(max(1, int(s.History.Newest())-n))
}

// inject adds r as the fault of a verb, in place of the fault that the verb injected
// before.
func (s *Storage[T]) inject(verb script.Verb, r faulty.Rule) {
	s.end(verb)
	s.faults[verb] = s.Add(r)
}

// end removes the fault of a verb, if there is one.
func (s *Storage[T]) end(verb script.Verb) {
	if f := s.faults[verb]; f != nil {
		f.Remove()
	}
	delete(s.faults, verb)
}

// unblock ends the fault of Block and wakes the watches, even if there was no such fault.
func (s *Storage[T]) unblock() {
	s.end(script.Block)
	s.Wake()
}

// RemoveFaults removes all faults, does the late writes that are left, and wakes the watches.
func (s *Storage[T]) RemoveFaults() {
	for _, verb := range slices.Sorted(maps.Keys(s.faults)) {
		s.end(verb)
	}
	s.doAllLate()
	s.unblock()
}

// delayed makes a list slow. Its context may end meanwhile, which fails the list; a list
// that had failed already does not count as one of the fault's.
func (s *Storage[T]) delayed(ctx context.Context, c *faulty.Call) {
	if c.Err != nil {
		c.Spare()
		return
	}
	s.Slow()
	c.Err = ctx.Err()
}
