package inspect

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/internal/loopback"
	"github.com/watchmill/watchmill/usercode"
)

// Path is where [Listen] serves the page.
const Path = "/debug/watchmill/"

// maxConnections is how many connections a [Server] has at a time. Every user of the machine may open some, and
// the files that the process may have open are for others, too.
const maxConnections = 32

// idleTimeout is how long a connection may be without a request.
const idleTimeout = time.Minute

// Server is a server of the page alone, for at most 32 connections at a time. It closes others.
type Server struct {
	listener net.Listener
	http     http.Server
	cancel   context.CancelFunc
	// ended is closed once no connection is accepted any more, and served is why.
	ended  chan struct{}
	served error
	// connections are those that are open, and open is how many.
	connections sync.WaitGroup
	open        atomic.Int64
}

// Listen serves the page at [Path] of a loopback address, such as "127.0.0.1:6061"
// or "localhost:0", which takes any free port. Close the server when done.
//
// The error is a [*usercode.ConfigError] if the address is not a loopback address: mount
// [Handler] in a server that authorises requests instead. So it is if a host is nil or zero.
// Otherwise it is that of [net.Listen].
func Listen(addr string, hosts ...*engine.Host) (*Server, error) {
	return Options{Engines: hosts}.Listen(addr)
}

// Listen is the function Listen for a page as the options say. The error is a
// [*usercode.ConfigError], too, where Handler panics.
func (o Options) Listen(addr string) (*Server, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if !isLoopback(addr) {
		return nil, &usercode.ConfigError{
			Field:   "address",
			Problem: `"` + addr + `" is not of loopback; give one such as 127.0.0.1:6061, or mount inspect.Handler in a server that checks who may read`,
		}
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle(Path, &handler{Options: o})
	mux.Handle("/{$}", http.RedirectHandler(Path, http.StatusFound))
	life, cancel := context.WithCancel(context.Background())
	s := &Server{listener: listener, cancel: cancel, ended: make(chan struct{})}
	s.http = http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: idleTimeout, MaxHeaderBytes: 1 << 14,
		BaseContext: func(net.Listener) context.Context { return life },
		ConnState:   s.count,
	}
	go func() {
		defer close(s.ended)
		s.served = s.http.Serve(listener)
	}()
	return s, nil
}

// count counts the connections that are open, and closes one that is too many. net/http reports a new one before
// Serve returns.
func (s *Server) count(conn net.Conn, now http.ConnState) {
	switch now {
	case http.StateNew:
		s.connections.Add(1)
		if s.open.Add(1) > maxConnections {
			_ = conn.Close() // net/http notices, and reports that it is closed
		}
	case http.StateClosed, http.StateHijacked:
		s.open.Add(-1)
		s.connections.Done()
	}
}

// ListenAndServe serves the page as [Listen] does until ctx is done, or until serving
// fails: then it returns the error.
func ListenAndServe(ctx context.Context, addr string, hosts ...*engine.Host) error {
	return Options{Engines: hosts}.ListenAndServe(ctx, addr)
}

// ListenAndServe is the function ListenAndServe for a page as the options say.
func (o Options) ListenAndServe(ctx context.Context, addr string) error {
	s, err := o.Listen(addr)
	if err != nil {
		return err
	}
	return s.closeAfter(ctx)
}

// closeAfter closes the server when ctx is done, or when it has ended by itself.
func (s *Server) closeAfter(ctx context.Context) error {
	select {
	case <-ctx.Done():
	case <-s.ended:
	}
	return s.Close()
}

// URL returns the address of the page.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() + Path }

// Close ends the server and its connections, and waits until they have ended. Its error is
// why serving failed before, if it did. It may be called again.
func (s *Server) Close() error {
	s.cancel() // ends the streams
	err := s.http.Close()
	if <-s.ended; !errors.Is(s.served, http.ErrServerClosed) {
		err = errors.Join(err, s.served)
	}
	s.connections.Wait()
	return err
}

// isLoopback reports whether an address has a port and a host of loopback.
func isLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	return err == nil && loopback.Is(host)
}
