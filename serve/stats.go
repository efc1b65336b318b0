package serve

import "sync/atomic"

// counters count since the server was made.
type counters struct {
	requests, events, refused atomic.Uint64
	running                   atomic.Int64 // requests, refused ones included, until the hooks have been called
}

// Stats are the figures of a server.
type Stats struct {
	// Requests is how many requests have arrived. InFlight is how many are being served,
	// and InFlightWrites how many of these write. InFlight counts none of the following:
	// Arriving is how many writes wait for their bodies, Departing how many answers are sent whose
	// requests have no place any more, or had none: of writes, of reads that have made room for
	// others since their clients read slowly, and over HTTP/2 of health checks and refusals.
	// Watches is how many watches are served.
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
	n := s.limiter.Counts()
	st.InFlight, st.InFlightWrites, st.Arriving, st.Departing, st.Watches = n.Reads+n.Writes, n.Writes, n.Arrivals, n.Departures, n.Watches
	st.EncodingHits, st.EncodingMisses, st.EncodingBytes = s.encodings.Stats()
	return st
}
