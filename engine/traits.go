package engine

import (
	"math"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// The [backend.Traits] of the storage decide how much history the window keeps, and whether
// the cache is compared with storage. Storage of the engine's own keeps little history if
// there is a cache, and has the cache's indexes.

// DefaultDurableEvents is how many events the window over durable storage keeps, whatever
// their age.
const DefaultDurableEvents = 1 << 17

// windowLimits returns the limits of the window, zero without a cache. Over storage that
// keeps history, events do not expire by age, so that a revision saved before a restart can
// be resumed from long after it.
func (e *core) windowLimits() Window {
	if !e.cfg.cached() {
		return Window{}
	}
	w := e.cfg.window
	if e.storage.Backend().Traits().KeepsHistory && w.MinAge == 0 && w.MinEvents == 0 {
		w.MinAge = math.MaxInt64
		if w.MaxEvents == 0 {
			w.MaxEvents = DefaultDurableEvents
		}
	}
	return w.WithDefaults()
}

// retain returns the bounds of the history in the engine's own storage, which needs
// little if the cache's window has the history.
func (s *settings) retain() Window {
	switch {
	case s.retained != (Window{}):
		return s.retained
	case !s.cached():
		return s.window
	}
	const events = 1024
	w := Window{MinAge: time.Second, MaxEvents: events, MaxBytes: s.window.MaxBytes}
	if s.window.MaxEvents > 0 {
		w.MaxEvents = min(events, s.window.MaxEvents)
	}
	return w
}

// stateIndexes returns the indexes of the engine's own storage, which are there for the cache
// to take over.
func (s *settings) stateIndexes() []store.Attribute {
	if !s.cached() {
		return nil
	}
	return s.indexes
}

// sharedVerifyPeriod is how often the cache of storage that others write to is
// compared with it.
const sharedVerifyPeriod = 5 * time.Minute

// verifyShared fills in VerifyEvery for storage that others write to.
func (e *core) verifyShared(t backend.Traits) {
	if t.Shared && e.cfg.cached() && e.cfg.verifyEvery == 0 {
		e.cfg.verifyEvery = sharedVerifyPeriod
	}
}
