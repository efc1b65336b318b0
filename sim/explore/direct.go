package explore

import (
	"context"
	"slices"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/explore/script"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend/faulty"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// Watches, reads and writes can use storage directly, through a second engine without a
// cache. A read shows the state of storage at the time of the call, a watch starts there,
// and a break of storage's watches ends it.
//
//	storage ──▶ faults that make an engine list ──▶ engine, with its cache ──▶ watches, reads
//	      └───▶ broken watches ──────────────────▶ engine without ───────────▶ watches, reads

// startDirect starts the engine without a cache.
func (w *World[T]) startDirect() (err error) {
	c := w.engineConfig()
	c.Backend, c.Name, c.NoCache, c.VerifyEvery = w.storage.direct, "engine without cache", true, 0
	if w.seams.direct != nil {
		c.Backend = w.seams.direct(w.storage.direct)
	}
	w.direct, err = engine.New(c)
	return err
}

// openDirect gives the engine without a cache an access to storage of its own, whose only
// faults are broken watches.
func (s *storage[T]) openDirect(inner *memory.Backend, setup script.Setup) {
	s.direct = faulty.New(inner, faulty.Options{Clock: s.clock, Sparse: setup.Transactions})
	if setup.Transactions {
		s.direct.Add(faulty.Rule{Do: s.showTransactions})
	}
	s.direct.Add(faulty.Rule{Ops: faulty.Writes, Do: faulty.After(s.recordCall)})
}

// BreakWatches ends the watches of both engines on storage with err.
func (s *storage[T]) BreakWatches(err error) {
	s.Backend.BreakWatches(err)
	if s.direct != nil && (s.sparesDirect == nil || !s.sparesDirect()) {
		s.direct.BreakWatches(err)
	}
	s.breaks = append(s.breaks, err)
}

// engineOf returns the engine of a watch.
func (w *World[T]) engineOf(r *watch[T]) *engine.Engine[T] {
	if r.Direct {
		return w.direct
	}
	return w.engine
}

// floor returns the oldest revision from which a watch can start.
func (w *World[T]) floor(r *watch[T]) store.Revision {
	if !r.Direct {
		return w.engine.Stats().WindowFloor
	}
	return w.storage.compacted()
}

// compacted returns the oldest revision that storage serves, or the one that it served
// before it went back, if that is higher.
func (s *storage[T]) compacted() store.Revision {
	floor, err := s.Unwrap().Compacted(context.Background())
	if err != nil {
		s.fail(judge.Failed(judge.Refusals, "storage", "%v", err))
	}
	s.floor = max(s.floor, floor)
	return s.floor
}

// broken returns the errors with which storage's watches were broken since the watch was
// requested. A watch of the engine with a cache does not end by them.
func (w *World[T]) broken(r *watch[T]) []error {
	if !r.Direct {
		return nil
	}
	return slices.Clone(w.storage.breaks[r.breaks:])
}
