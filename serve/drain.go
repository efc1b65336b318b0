package serve

import (
	"context"
	"sync/atomic"
	"time"
)

// The states of a server.
const (
	serving  int32 = iota
	unready        // it serves, and says that it will not for long
	refusing       // new requests are refused
)

// counters are what a server has done.
type counters struct{ requests, events atomic.Uint64 }

// Stats are figures of a server.
type Stats struct {
	// Requests is how many have come; InFlight how many are being served, watches
	// not among them, and InFlightWrites how many of those write; Watches how many
	// watches are.
	Requests                 uint64
	InFlight, InFlightWrites int
	Watches                  int
	// Events is how many events the watches were sent, bookmarks included.
	Events uint64
	// EncodingHits and EncodingMisses are how often an object's bytes were there
	// for a watch, and how often not. EncodingBytes is what is kept of them.
	EncodingHits, EncodingMisses uint64
	EncodingBytes                int
}

// Stats returns the figures of now. It does not block.
func (s *Server) Stats() Stats {
	st := Stats{Requests: s.counts.requests.Load(), Events: s.counts.events.Load()}
	var reads int
	reads, st.InFlightWrites, st.Watches = s.inFlight.counts()
	st.InFlight = reads + st.InFlightWrites
	st.EncodingHits, st.EncodingMisses, st.EncodingBytes = s.encodings.stats()
	return st
}

// Shutdown drains the server: /readyz fails from now on; after
// [Limits].ShutdownDelay new requests are refused with 429; the watches are ended
// evenly over [Limits].DrainWatches, those whose initial state is not complete
// with an ERROR 429; and it returns when nothing is being served any more. If ctx
// ends first, all watches are ended at once, and it returns ctx's cause if
// something is served still.
func (s *Server) Shutdown(ctx context.Context) error {
	s.draining.CompareAndSwap(serving, unready)
	sleep(ctx, s.limits.ShutdownDelay)
	s.draining.Store(refusing)
	ends := s.inFlight.ends()
	for i, end := range ends {
		end(errShuttingDown)
		if i+1 < len(ends) {
			sleep(ctx, s.limits.DrainWatches/time.Duration(len(ends)))
		}
	}
	s.inFlight.endAll(errShuttingDown)
	idle := s.inFlight.whenIdle()
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
