package serve

// StartingWatches returns how many watches of a server are still starting.
func StartingWatches(s *Server) int {
	s.running.mu.Lock()
	defer s.running.mu.Unlock()
	return len(s.running.starts)
}

// ConnectionsOf returns the default of Limits.ConnectionsPerAddress in a process that may have so
// many files open.
var ConnectionsOf = connectionsOf

// LimitsOf returns the limits of a server with these, which knows its users or does not.
func LimitsOf(l Limits, knowsUsers bool) Limits { return l.withDefaults(knowsUsers) }
