package serve

// ServeOn is serveOn for tests with a listener of their own.
var ServeOn = (*Server).serveOn
