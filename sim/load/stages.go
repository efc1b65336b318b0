package load

import (
	"context"
	"time"

	"github.com/watchmill/watchmill/engine"
)

// stages measures the stretches of an event's way that writers and consumers
// cannot see.
type stages struct {
	run             *run
	cache, dispatch *recorder
}

func newStages(r *run) *stages {
	return &stages{run: r, cache: newRecorder(), dispatch: newRecorder()}
}

// probe measures until ctx is done.
func (s *stages) probe(ctx context.Context) {
	// It has no backlog, since it does nothing else. If it ends in spite of that,
	// the stage has fewer events; the count says so.
	watch, err := s.run.engine.Handle(ctx, engine.WatchOptions{OnPool: true}, s.dispatched)
	if err == nil {
		defer watch.Stop()
	}
	s.probeCache(ctx)
}

// dispatched is called on the engine's workers.
func (s *stages) dispatched(ev engine.Event[item]) {
	if ev.Object != nil && ev.Marks == 0 && ev.Type != engine.Deleted {
		s.dispatch.record(0, s.run.watch.now()-ev.Object.Value.stored)
	}
}

// probeCache follows one write after the other into the cache.
func (s *stages) probeCache(ctx context.Context) {
	var last engine.Revision
	for {
		newest, ok := s.run.storage.ledger.newest()
		if !ok || newest.revision == last || newest.stored < s.run.watch.begun.Load() {
			if sleep(ctx, time.Millisecond) != nil {
				return
			}
			continue
		}
		last = newest.revision
		if s.run.engine.WaitFor(ctx, last) == nil {
			s.cache.record(0, s.run.watch.now()-newest.stored)
		} else if ctx.Err() != nil {
			return
		}
	}
}
