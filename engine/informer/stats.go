package informer

import (
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/store"
)

// Stats is what an informer has and has done. The figures are each right, but
// not all of one instant.
type Stats struct {
	// Revision is what can be read, Objects how many there are, Quarantined how
	// many could not be taken as they are.
	Revision             store.Revision
	Objects, Quarantined int
	// Handlers is how many there are; for how far each is behind see
	// [Handle.Lag].
	Handlers int
	// Notifications counts what there was to tell every handler, but for the
	// states that they began with and resyncs.
	Notifications uint64
	// Source is what the Reflector has seen: lists, watches, errors.
	Source reflector.Stats
}

// Stats returns what the informer has and has done. It never blocks.
func (s *SharedInformer[T]) Stats() Stats {
	snapshot := s.Snapshot()
	stats := Stats{
		Revision: snapshot.revision, Objects: snapshot.Len(), Quarantined: len(s.Quarantined()),
		Handlers: int(s.handlers.Load()), Notifications: s.notified.Load(),
	}
	if source := s.source.Load(); source != nil {
		stats.Source = source.Stats()
	}
	return stats
}
