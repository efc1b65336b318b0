package serve

import (
	"context"
	"sync/atomic"
	"time"
)

// The states of a server.
const (
	serving  int32 = iota
	unready        // it still serves, but /readyz fails
	refusing       // new requests are refused
)

// counters count since the server was made.
type counters struct {
	requests, events, refused atomic.Uint64
	running                   atomic.Int64 // requests, refused ones included, until the hooks have been called
}

// Stats are the figures of a server.
type Stats struct {
	// Requests is how many requests have arrived. InFlight is how many are being served,
	// and InFlightWrites how many of these write. InFlight counts none of the following:
	// Arriving is how many writes wait for their bodies, Departing how many reads have made
	// room for others since their clients read slowly, Watches how many watches are served.
	Requests                 uint64
	InFlight, InFlightWrites int
	Arriving, Departing      int
	Watches                  int
	// RefusedConnections is how many connections were closed without an answer, since their
	// address had more than [Limits].ConnectionsPerAddress.
	RefusedConnections uint64
	// Events is how many events watches have been sent, bookmarks included.
	Events uint64
	// EncodingHits is how often the bytes of an object were already kept, EncodingMisses
	// how often they had to be made, whether they were kept then or not. EncodingBytes is
	// the size of the encodings that are kept.
	EncodingHits, EncodingMisses uint64
	EncodingBytes                int
}

// Stats returns the current figures. It does not block.
func (s *Server) Stats() Stats {
	st := Stats{Requests: s.counts.requests.Load(), Events: s.counts.events.Load(), RefusedConnections: s.counts.refused.Load()}
	n := s.inFlight.counts()
	st.InFlight, st.InFlightWrites, st.Arriving, st.Departing, st.Watches = n.reads+n.writes, n.writes, n.arrivals, n.departures, n.watches
	st.EncodingHits, st.EncodingMisses, st.EncodingBytes = s.encodings.stats()
	return st
}

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
	watches := s.inFlight.allStarted()
	for i, w := range watches {
		w.endBy(errShuttingDown)
		if i+1 < len(watches) {
			sleep(ctx, s.limits.DrainWatches/time.Duration(len(watches)))
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
