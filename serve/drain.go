package serve

import (
	"context"
	"time"
)

// The states of a server.
const (
	serving  int32 = iota
	unready        // it still serves, but /readyz fails
	refusing       // new requests are refused
)

// Shutdown drains the server. From now on /readyz fails; after [Limits].ShutdownDelay new
// requests are refused with 429; and watches are ended evenly over [Limits].DrainWatches,
// with an ERROR 429 if their initial state is not complete; those that have not started by
// then are refused. It returns when nothing is being served any more, and [Config].Audit has been
// called for what was; requests that are still being authenticated are refused later. If ctx is
// done first, it ends all watches at once, and returns ctx's cause if a request is still being
// served.
func (s *Server) Shutdown(ctx context.Context) error {
	s.draining.CompareAndSwap(serving, unready)
	sleep(ctx, s.limits.ShutdownDelay)
	s.draining.Store(refusing)
	watches := s.running.allStarted()
	for i, w := range watches {
		w.endBy(errShuttingDown)
		if i+1 < len(watches) {
			sleep(ctx, s.limits.DrainWatches/time.Duration(len(watches)))
		}
	}
	s.running.endAll(errShuttingDown)
	idle := s.running.whenIdle()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-idle:
		return nil
	default:
		return context.Cause(ctx)
	}
}

// sleep waits for d, or until ctx is done.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
