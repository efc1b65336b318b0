package serve

// WatchingUsers returns how many users the watches of a server are counted of.
func WatchingUsers(s *Server) int {
	s.inFlight.mu.Lock()
	defer s.inFlight.mu.Unlock()
	return len(s.inFlight.watchers.byUser)
}

// StartingWatches returns how many watches of a server are still starting.
func StartingWatches(s *Server) int {
	s.inFlight.mu.Lock()
	defer s.inFlight.mu.Unlock()
	return len(s.inFlight.starts)
}

// ConnectionsOf returns the default of Limits.ConnectionsPerAddress in a process that may have so
// many files open.
var ConnectionsOf = connectionsOf

// LimitsOf returns the limits of a server with these, which knows its users or does not.
func LimitsOf(l Limits, knowsUsers bool) Limits { return l.withDefaults(knowsUsers) }
