package world

import (
	"slices"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
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
	c.Backend, c.Name, c.NoCache, c.VerifyEvery = w.storage.Direct, "engine without cache", true, 0
	if w.seams.direct != nil {
		c.Backend = w.seams.direct(w.storage.Direct)
	}
	w.direct, err = engine.New(c)
	return err
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
	return w.storage.Floor()
}

// broken returns the errors with which storage's watches were broken since the watch was
// requested. A watch of the engine with a cache does not end by them.
func (w *World[T]) broken(r *watch[T]) []error {
	if !r.Direct {
		return nil
	}
	return slices.Clone(w.storage.Breaks[r.breaks:])
}
