package enginetest

import (
	"context"
	"slices"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend/faulty"
)

// FailList makes the next n calls of List fail with err, or [ErrInjected] if that is
// nil. It replaces the previous FailList; zero calls end it.
func (s *Source[T]) FailList(n int, err error) { s.failCalls(&s.lists, faulty.OpList, n, err) }

// FailWatch is FailList for calls of Watch.
func (s *Source[T]) FailWatch(n int, err error) { s.failCalls(&s.watches, faulty.OpWatch, n, err) }

// failCalls replaces the fault that current is.
func (s *Source[T]) failCalls(current **faulty.Fault, op faulty.Op, n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if *current != nil {
		(*current).Remove()
		*current = nil
	}
	if n > 0 {
		*current = s.Backend.Add(faulty.Rule{Ops: []faulty.Op{op}, Times: n, Do: faulty.Fail(err)})
	}
}

// ListCalls returns how often List was called.
func (s *Source[T]) ListCalls() int { return int(s.Calls(faulty.OpList)) }

// WatchCalls returns how often Watch was called.
func (s *Source[T]) WatchCalls() int { return int(s.Calls(faulty.OpWatch)) }

// ResetWatches breaks all watches that run: their next call fails with err, or
// [ErrInjected] if that is nil. It returns how many there were.
func (s *Source[T]) ResetWatches(err error) int { return s.BreakWatches(err) }

// Repeat makes all watches that run deliver their last event once more.
func (s *Source[T]) Repeat() { s.RepeatLast() }

// Stall makes the storage go silent: watches deliver nothing, until Resume. Lists
// and writes go on.
func (s *Source[T]) Stall() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stalled == nil {
		s.stalled = s.Backend.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpNext}, Do: faulty.Hang()})
	}
}

// Resume ends Stall. All watches that run notify their readers.
func (s *Source[T]) Resume() {
	s.mu.Lock()
	stalled := s.stalled
	s.stalled = nil
	s.mu.Unlock()
	if stalled != nil {
		stalled.Remove()
	}
}

// Hide hides the changes that write makes from all watches, for good; lists
// show them. Write must only write: reads through an engine may wait for a watch
// that Hide holds up. The error is that of write, or [store.ErrClosed].
func (s *Source[T]) Hide(write func() error) error {
	s.hiding.Lock()
	defer s.hiding.Unlock()
	before, err := s.Unwrap().Revision(context.Background())
	if err != nil {
		return err
	}
	failed := write()
	after, err := s.Unwrap().Revision(context.Background())
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for rev := before + 1; rev <= after; rev++ {
		s.hidden[rev] = true
	}
	return failed
}

// hide leaves out of a batch what is hidden. It is an [faulty.Action].
func (s *Source[T]) hide(_ context.Context, c *faulty.Call, proceed func()) {
	s.hiding.RLock()
	defer s.hiding.RUnlock()
	proceed()
	s.mu.Lock()
	defer s.mu.Unlock()
	isHidden := func(ev store.Event) bool { return s.hidden[ev.Revision] }
	if slices.ContainsFunc(c.Batch.Events, isHidden) {
		c.Batch.Events = slices.DeleteFunc(slices.Clone(c.Batch.Events), isHidden)
	}
}

// Forget drops all history before the newest revision: watches that have not reached
// it, and those that start before it, expire. The error is [store.ErrClosed].
func (s *Source[T]) Forget() error {
	rev, err := s.Unwrap().Revision(context.Background())
	if err != nil {
		return err
	}
	return s.Unwrap().Compact(context.Background(), rev)
}
