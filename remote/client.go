package remote

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

// How long a connection may be quiet before it is probed, by a ping of HTTP/2 or a probe of TCP, and how long it may
// leave that unanswered. The operating system may take a quarter of an hour to find that a connection of HTTP/2 is
// dead, and three minutes to find that a quiet one of HTTP/1.1 is.
const (
	pingAfter   = 30 * time.Second
	pingTimeout = 15 * time.Second
)

// idleTimeout is how long a connection is kept for the next request. Proxies close one after 30 s or more, and over
// HTTP/1.1 it is unknown whether a write was done that is sent meanwhile.
const idleTimeout = 25 * time.Second

// probes are those of TCP. There are several, since a network may lose some.
var probes = net.KeepAliveConfig{Enable: true, Idle: pingAfter, Interval: pingTimeout / 5, Count: 5}

// newClient returns a client with connections of its own, which it leaves if they do not answer, and which
// speak TLS as secure says. If the program has replaced [http.DefaultTransport] by one of another type, that is used
// as it is.
func newClient(secure *tls.Config) *http.Client {
	by, known := http.DefaultTransport.(*http.Transport)
	if !known {
		return &http.Client{}
	}
	by = by.Clone()
	if secure != nil {
		by.TLSClientConfig = secure.Clone()
	}
	if by.IdleConnTimeout <= 0 || by.IdleConnTimeout > idleTimeout {
		by.IdleConnTimeout = idleTimeout
	}
	if by.HTTP2 == nil {
		by.HTTP2 = &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout}
	}
	if by.DialContext != nil {
		by.DialContext = probing(by.DialContext)
	}
	if secure != nil && secure.GetClientCertificate != nil {
		return &http.Client{Transport: &renewing{now: by}}
	}
	return &http.Client{Transport: by}
}

// dialing is the type of [http.Transport].DialContext.
type dialing func(ctx context.Context, network, address string) (net.Conn, error)

// probing dials as dial does, and has the system probe the connection.
func probing(dial dialing) dialing {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if tcp, is := conn.(*net.TCPConn); is && err == nil {
			_ = tcp.SetKeepAliveConfig(probes) // without them it is noticed later
		}
		return conn, err
	}
}
