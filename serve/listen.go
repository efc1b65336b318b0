package serve

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/internal/loopback"
	"github.com/watchmill/watchmill/serve/internal/transport"
)

// ListenOptions says where and how to listen.
type ListenOptions struct {
	// Address is host and port. An empty host means loopback, port 0 any free port.
	Address string
	// Listener is an open socket to serve in place of Address: one that a supervisor hands
	// over, or a Unix socket. It is closed when the call returns.
	Listener net.Listener
	// TLS encrypts connections, by TLS 1.2 or newer; nil means that they are not encrypted. A
	// certificate that is renewed, and authorities of clients that change, need GetCertificate
	// and GetConfigForClient.
	TLS *tls.Config
	// Insecure allows an address that other machines can reach without TLS or without
	// [Config].Authenticate.
	Insecure bool
	// Ready is called with the address once the server listens. Optional.
	Ready func(net.Addr)
}

// ListenAndServe serves until ctx is done or listening fails, then shuts down. It blocks until nothing is
// being served, and returns nil if the shutdown was complete.
//
// Errors: an [*engine.ConfigError] for an address that other machines can reach without
// TLS or authentication, for TLS without a certificate, and for both Address and Listener; those
// of listening; and one that says how many requests are still running, which may use what the
// program closes next.
func (s *Server) ListenAndServe(ctx context.Context, l ListenOptions) error {
	listener, err := l.open(ctx, s.cfg.Authenticate != nil)
	if err != nil {
		return err
	}
	listener = transport.Limit(listener, s.limits.ConnectionsPerAddress, s.refusedConnection)
	if l.TLS != nil {
		listener = tls.NewListener(listener, hardenedTLS(l.TLS))
	}
	if l.Ready != nil {
		l.Ready(listener.Addr())
	}
	return s.serveOn(ctx, listener)
}

// refusedConnection is called for each connection that is closed since its address has too many: the
// client sees no answer that says so.
func (s *Server) refusedConnection(from netip.Addr) {
	s.counts.refused.Add(1)
	s.crowded.log(s.log, "a connection was refused, since its address, or its network of IPv6, has as many as it may have", "address", from, "limit", s.limits.ConnectionsPerAddress)
}

// hardenedTLS returns the configuration of the listener, and has the function that chooses one for
// a client do the same with that.
func hardenedTLS(given *tls.Config) *tls.Config {
	cfg := given.Clone()
	cfg.MinVersion = max(cfg.MinVersion, tls.VersionTLS12)
	cfg.NextProtos = []string{"h2", "http/1.1"}
	if choose := cfg.GetConfigForClient; choose != nil {
		cfg.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			chosen, err := choose(hello)
			if chosen != nil {
				chosen = hardenedTLS(chosen)
			}
			return chosen, err
		}
	}
	return cfg
}

// open returns the socket to serve. If it fails, Listener is closed.
func (l *ListenOptions) open(ctx context.Context, knowsUsers bool) (net.Listener, error) {
	if l.Listener != nil {
		if err := l.validate("ListenOptions.Listener", l.Listener.Addr(), knowsUsers); err != nil {
			return nil, errors.Join(err, l.Listener.Close())
		}
		return l.Listener, nil
	}
	host, port, err := net.SplitHostPort(l.Address)
	if err != nil {
		return nil, &engine.ConfigError{Field: "ListenOptions.Address", Problem: fmt.Sprintf("is %q: give host:port, such as 127.0.0.1:8080", l.Address)}
	}
	at := address(net.JoinHostPort(cmp.Or(host, "127.0.0.1"), port))
	if err := l.validate("ListenOptions.Address", at, knowsUsers); err != nil {
		return nil, err
	}
	return new(net.ListenConfig).Listen(ctx, at.Network(), at.String())
}

// address is the address of a TCP socket that is not open yet.
type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }

// validate returns an [*engine.ConfigError] if the server must not listen at that address, which
// field has, or if TLS has no certificate.
func (l *ListenOptions) validate(field string, at net.Addr, knowsUsers bool) error {
	if c := l.TLS; c != nil && len(c.Certificates) == 0 && c.GetCertificate == nil && c.GetConfigForClient == nil {
		return &engine.ConfigError{Field: "ListenOptions.TLS", Problem: "has no certificate; set Certificates, GetCertificate or GetConfigForClient"}
	}
	switch {
	case l.Listener != nil && l.Address != "":
		return &engine.ConfigError{Field: field, Problem: "is set, and so is Address; give one of them"}
	case !l.Insecure && !isLocal(at) && (l.TLS == nil || !knowsUsers):
		return &engine.ConfigError{Field: field, Problem: fmt.Sprintf("is %s, which others can reach: give TLS and Config.Authenticate, or set Insecure", at)}
	}
	return nil
}

// isLocal reports whether this machine alone reaches an address: loopback, or a Unix socket.
func isLocal(at net.Addr) bool {
	host, _, err := net.SplitHostPort(at.String())
	return at.Network() == "unix" || err == nil && loopback.Is(host)
}

// closeTimeout bounds the wait of a drained server for its connections to become idle.
const closeTimeout = 5 * time.Second

// serveOn serves a listener until ctx is done, or the listener fails.
func (s *Server) serveOn(ctx context.Context, listener net.Listener) error {
	h := &http.Server{Handler: s, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelWarn)}
	s.Harden(h)
	failed := make(chan error, 1)
	go func() {
		defer close(failed)
		failed <- h.Serve(listener)
	}()
	var failure error
	select {
	case failure = <-failed:
	case <-ctx.Done():
	}
	last := max(s.limits.ReadTimeout, s.limits.WriteTimeout) // of a request that arrived just before the refusals
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.limits.ShutdownDelay+s.limits.DrainWatches+last)
	defer cancel()
	err := errors.Join(failure, s.Shutdown(limit))
	closing, stop := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer stop()
	if h.Shutdown(closing) != nil {
		err = errors.Join(err, h.Close())
		if n := s.counts.running.Load(); n > 0 {
			err = errors.Join(err, fmt.Errorf("%d requests are still running, such as in Config.Authenticate", n))
		}
	}
	s.running.cut()
	for range failed { // until it is closed
	}
	return err
}

// A connection of HTTP/2 that was quiet for pingAfter is pinged, and closed if it stays so for pingTimeout.
const (
	pingAfter   = 30 * time.Second
	pingTimeout = 15 * time.Second
)

// idleTimeout is how long a connection without a request is kept. It is more than the 90 s of clients in Go: over
// HTTP/1.1 a write that is sent while the server closes the connection fails, and its client does not know whether it
// was done.
const idleTimeout = 2 * time.Minute

// Harden sets the timeouts and limits of an http.Server that serves s. It sets no timeout
// for writing, since watches last: [Limits].WriteStall takes its place.
//
// If s is the handler of h itself, and not behind another, a watch over HTTP/1.1 takes its
// connection over from h, which saves more than half of its memory. Neither h.Shutdown
// nor h.Close knows of it then: [Server.Shutdown] ends it. The connection is closed after
// the watch. Harden sets h.BaseContext; set one of your own before: when its context is done,
// such a watch ends, too. With an h.ConnContext, h keeps all connections.
func (s *Server) Harden(h *http.Server) {
	s.markHardened(h)
	h.ReadHeaderTimeout = 10 * time.Second
	h.IdleTimeout = idleTimeout
	h.MaxHeaderBytes = 64 << 10
	h.HTTP2 = &http.HTTP2Config{
		MaxConcurrentStreams: 250, SendPingTimeout: pingAfter, PingTimeout: pingTimeout, WriteByteTimeout: s.limits.WriteStall,
	}
}

// ListenAndServe serves resources on a loopback address, without authentication, until ctx
// is done. It is [Server.ListenAndServe] with the default settings, and blocks as that does.
//
// Errors: as for [New], and for Server.ListenAndServe.
func ListenAndServe(ctx context.Context, addr string, of ...Provider) error {
	s, err := New(Config{Resources: of})
	if err != nil {
		return err
	}
	return s.ListenAndServe(ctx, ListenOptions{Address: addr})
}
