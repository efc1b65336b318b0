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

// startUncached starts the engine without a cache.
func (w *World[T]) startUncached() (err error) {
	c := w.engineConfig()
	c.Backend, c.Name, c.NoCache = w.storage.Uncached, "engine without cache", true
	c.VerifyEvery, c.Window, c.ListWhenBehind, c.Backoff = 0, engine.Window{}, 0, engine.Backoff{}
	if w.seams.uncached != nil {
		c.Backend = w.seams.uncached(w.storage.Uncached)
	}
	w.uncached, err = engine.New(c)
	return err
}

// engineOf returns the engine of a watch.
func (w *World[T]) engineOf(r *watch[T]) *engine.Engine[T] {
	if r.Uncached {
		return w.uncached
	}
	return w.engine
}

// floor returns the oldest revision from which a watch can start.
func (w *World[T]) floor(r *watch[T]) store.Revision {
	if !r.Uncached {
		return w.engine.Stats().WindowFloor
	}
	return w.storage.Floor()
}

// broken returns the errors with which storage's watches were broken since the watch was
// requested. A watch of the engine with a cache does not end by them.
func (w *World[T]) broken(r *watch[T]) []error {
	if !r.Uncached {
		return nil
	}
	return slices.Clone(w.storage.Breaks[r.breaks:])
}
