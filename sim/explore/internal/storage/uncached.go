package storage

import (
	"context"

	"github.com/watchmill/watchmill/sim/explore/script"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend/faulty"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// openUncached gives the engine without a cache an access to storage of its own, whose only
// faults are broken watches.
func (s *Storage[T]) openUncached(inner *memory.Backend, setup script.Setup) {
	s.Uncached = faulty.New(inner, faulty.Options{Clock: s.clock, Sparse: setup.Transactions})
	if setup.Transactions {
		s.Uncached.Add(faulty.Rule{Do: s.showTransactions})
	}
	s.Uncached.Add(faulty.Rule{Ops: faulty.Writes, Do: faulty.After(s.recordCall)})
}

// BreakWatches ends the watches of both engines on storage with err.
func (s *Storage[T]) BreakWatches(err error) {
	s.Backend.BreakWatches(err)
	if s.Uncached != nil && (s.SparesUncached == nil || !s.SparesUncached()) {
		s.Uncached.BreakWatches(err)
	}
	s.Breaks = append(s.Breaks, err)
}

// Floor returns the oldest revision that storage serves, or the one that it served
// before it went back, if that is higher.
func (s *Storage[T]) Floor() store.Revision {
	floor, err := s.Unwrap().Compacted(context.Background())
	if err != nil {
		s.Fail(judge.Failed(judge.Refusals, "storage", "%v", err))
	}
	s.oldest = max(s.oldest, floor)
	return s.oldest
}
