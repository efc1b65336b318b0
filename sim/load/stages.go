package load

import (
	"context"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/load/internal/latency"
)

// stages measures the stretches of an event's way that writers and consumers
// cannot see.
type stages struct {
	run             *run
	cache, dispatch *latency.Recorder
}

func newStages(r *run) *stages {
	return &stages{run: r, cache: latency.NewRecorder(), dispatch: latency.NewRecorder()}
}

// probe measures until ctx is done.
func (s *stages) probe(ctx context.Context) {
	// It has no backlog, since it does nothing else. If it ends in spite of that,
	// the stage has fewer events; the count says so.
	watch, err := s.run.engine.Handle(ctx, engine.WatchOptions{OnPool: true}, s.dispatched)
	switch {
	case err == nil:
		defer watch.Stop()
	case ctx.Err() == nil:
		s.run.failure("dispatch", err)
	}
	s.probeCache(ctx)
}

// dispatched is called on the engine's workers.
func (s *stages) dispatched(ev engine.Event[content.Item]) {
	if ev.Object != nil && ev.Marks == 0 && ev.Type != engine.Deleted {
		s.dispatch.Record(0, s.run.watch.now()-ev.Object.Value.Stored)
	}
}

// probeCache follows one write after the other into the cache.
func (s *stages) probeCache(ctx context.Context) {
	for {
		select {
		case written := <-s.run.storage.Writes():
			if s.run.engine.WaitFor(ctx, written.Revision) == nil {
				s.cache.Record(0, s.run.watch.now()-written.Stored)
			}
		case <-ctx.Done():
			return
		}
	}
}
