package serve

// ServeOn is serveOn for tests with a listener of their own.
var ServeOn = (*Server).serveOn

// WatchingUsers returns how many users the watches of a server are counted of.
func WatchingUsers(s *Server) int {
	s.inFlight.mu.Lock()
	defer s.inFlight.mu.Unlock()
	return len(s.inFlight.perUser)
}
