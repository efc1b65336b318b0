package bench

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/watchmill/watchmill/registry/apply"
	"github.com/watchmill/watchmill/registry/crd"
	"github.com/watchmill/watchmill/serve"
)

// Endpoint is a server of a custom kind, Pod of the group bench.watchmill in version v1, that
// listens for connections with TLS.
type Endpoint struct {
	// Addr is its host and port.
	Addr string
	// Roots are the certificates that clients trust, in PEM, and Name is the name that they
	// expect in the server's; empty for that of Addr.
	Roots []byte
	Name  string
	// Token is the bearer token of clients; empty if they need none.
	Token string
	// Stop stops the server.
	Stop func() error `json:"-"`
}

// Close stops the server.
func (e *Endpoint) Close() error { return e.Stop() }

// trust returns how clients connect.
func (e *Endpoint) trust() (*tls.Config, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(e.Roots) {
		return nil, errors.New("the server has no certificate for clients to trust")
	}
	return &tls.Config{RootCAs: roots, ServerName: e.Name}, nil
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
			Run:   servedToClients, Floor: onBare(servedToClients), Able: able, Apart: true,
		},
		{
			ID: "W26/clients", Text: "1,000 watches of a custom kind over TLS and HTTP/2, 20 clients that write as fast as they can",
			Full:  Params{Watchers: 1000, Objects: 100, Events: 1000, Writers: 20},
			Small: Params{Watchers: 20, Objects: 20, Events: 40, Writers: 4},
			Goals: []Goal{atMost(CPU, 0.25), mustBeZero(Lost)},
			Run:   servedToClients, Floor: onBare(servedToClients), Able: able, Apart: true,
		},
		{
			ID: "W26/idle", Text: "1,000 idle watches of a custom kind over TLS and HTTP/2",
			Full:  Params{Watchers: 1000},
			Small: Params{Watchers: 120},
			Goals: []Goal{atMost(BytesPerWatcher, 1.0/3)},
			Run:   idleServed((*wire).idleTwo, overRequests), Floor: onBare(idleServed((*wire).idleTwo, overRequests)), Able: able, Apart: true,
		},
	}
}

// CustomDefinition is the manifest of the kind, by which each contender serves it.
const CustomDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: pods.bench.watchmill}
spec:
  group: bench.watchmill
  scope: Namespaced
  names: {plural: pods, singular: pod, kind: Pod, listKind: PodList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {nodeName: {type: string}}}
`

// customServer is a server of a custom kind, whose objects are written over HTTP alone.
type customServer struct {
	*serve.Server
	objects io.Closer
}

// openCustom serves the kind of a manifest with managed fields, as watchmill serve does.
func openCustom(ctx context.Context) (*Endpoint, error) {
	defined, err := crd.Parse(strings.NewReader(CustomDefinition))
	if err != nil {
		return nil, err
	}
	cfg := defined[0].Config()
	cfg.Apply = apply.Versions(defined[0].Schemas())
	objects, server, err := openResource(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return listenAsEndpoint(ctx, customServer{server, objects})
}

func (s customServer) Handler() http.Handler                 { return s.Server }
func (s customServer) Path() string                          { return podPath }
func (s customServer) Close() error                          { return s.objects.Close() }
func (s customServer) WaitFor(context.Context, uint64) error { return errors.ErrUnsupported }
func (s customServer) Write(context.Context, Object) (uint64, error) {
	return 0, errors.ErrUnsupported
}

// listenAsEndpoint serves on loopback, encrypted.
func listenAsEndpoint(ctx context.Context, server Server) (*Endpoint, error) {
	own, err := newIdentity()
	if err != nil {
		return nil, errors.Join(err, server.Close())
	}
	s, err := listen(ctx, server, own)
	if err != nil {
		return nil, err
	}
	return &Endpoint{Addr: s.addr, Roots: own.roots, Stop: s.Close}, nil
}
