package bench

import (
	"context"
	"crypto/tls"

	"github.com/watchmill/watchmill/registry/apply"
)

// Endpoint is a server of a custom kind, Pod of the group bench.watchmill in version v1, that
// listens for connections with TLS.
type Endpoint struct {
	// Addr is its host and port.
	Addr string
	// Trust is how clients connect.
	Trust *tls.Config
	// Token is the bearer token of clients; empty if they need none.
	Token string
	// Stop stops the server.
	Stop func() error
}

// customKind is W26: as W16/tls and W17/tls, with smaller sizes, since the rival is slower
// than that of those. It runs apart, since the rival leaves goroutines and memory behind.
func customKind() []Workload {
	able := func(c Contender) bool { return c.Custom != nil }
	return []Workload{
		{
			ID: "W26/tls", Text: "1,000 watches of a custom kind over TLS and HTTP/2, one client that writes as fast as it can",
			Full:  Params{Watchers: 1000, Objects: 100, Events: 200},
			Small: Params{Watchers: 20, Objects: 5, Events: 40},
			Goals: []Goal{atMost(CPU, 0.25), mustBeZero(Lost)},
			Run:   served(1, overRequests), Floor: servedFloor(1, overTLS), Able: able, Apart: true,
		},
		{
			ID: "W26/idle", Text: "1,000 idle watches of a custom kind over TLS and HTTP/2",
			Full:  Params{Watchers: 1000},
			Small: Params{Watchers: 120},
			Goals: []Goal{atMost(BytesPerWatcher, 1.0/3)},
			Run:   idleServed((*wire).idleTwo, overRequests), Floor: idleFloor((*wire).idleTwo, overTLS), Able: able, Apart: true,
		},
	}
}

// openCustom serves the kind with managed fields, as watchmill serve does.
func openCustom(ctx context.Context) (*Endpoint, error) {
	cfg := podConfig()
	cfg.Apply = apply.New
	own, err := newIdentity()
	if err != nil {
		return nil, err
	}
	server, err := openKind(ctx, cfg, nil)
	if err != nil {
		return nil, err
	}
	s, err := listen(ctx, server, own)
	if err != nil {
		return nil, err
	}
	return &Endpoint{Addr: s.addr, Trust: s.trust, Stop: s.Close}, nil
}
