package serve_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
)

const gadgetsPath = "/apis/example.com/v1/namespaces/default/gadgets"

// newGadgets returns a server of gadgets, and what closes them.
func newGadgets(cfg serve.Config) (*serve.Server, func()) {
	gadgets, err := registry.New(registry.Config[Gadget]{Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Gadget"}})
	if err != nil {
		log.Fatal(err)
	}
	cfg.Resources = []serve.Provider{gadgets}
	if err := gadgets.Engine().WaitReady(context.Background()); err != nil { // the kind has been read
		log.Fatal(err)
	}
	server, err := serve.New(cfg)
	if err != nil {
		log.Fatal(err)
	}
	return server, func() { _ = gadgets.Close() }
}

// send sends a request to the server, as a client of its machine, and returns the status.
func send(s http.Handler, method, path, body string, header ...string) int {
	request := httptest.NewRequest(method, "http://127.0.0.1"+path, strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	answer := httptest.NewRecorder()
	s.ServeHTTP(answer, request)
	return answer.Code
}

// A server is a handler, which a program mounts beside its own. Clients such as kubectl need all of its paths.
func ExampleServer_ServeHTTP() {
	server, closeGadgets := newGadgets(serve.Config{})
	defer closeGadgets()
	mux := http.NewServeMux()
	mux.Handle("/", server)
	mux.HandleFunc("/hello", func(http.ResponseWriter, *http.Request) {})
	fmt.Println(send(mux, http.MethodPost, gadgetsPath, `{"metadata":{"name":"gear"}}`))
	fmt.Println(send(mux, http.MethodGet, gadgetsPath+"/gear", ""), send(mux, http.MethodGet, gadgetsPath+"/axle", ""))
	fmt.Println(send(mux, http.MethodGet, "/hello", ""))
	// Output:
	// 201
	// 200 404
	// 200
}

func ExampleBearerTokens() {
	server, closeGadgets := newGadgets(serve.Config{
		Authenticate: serve.BearerTokens(map[string]serve.User{"s3cret": {Name: "ada"}}),
	})
	defer closeGadgets()
	fmt.Println(send(server, http.MethodGet, gadgetsPath, "", "Authorization", "Bearer s3cret"))
	fmt.Println(send(server, http.MethodGet, gadgetsPath, "", "Authorization", "Bearer guessed"))
	// Output:
	// 200
	// 401
}

// The name and the groups of a user are in the certificate that the TLS listener has verified.
func ExampleClientCertificates() {
	request := httptest.NewRequest(http.MethodGet, "https://127.0.0.1/", nil)
	_, err := serve.ClientCertificates(request)
	fmt.Println(errors.Is(err, serve.ErrUnauthenticated))

	shown := &x509.Certificate{Subject: pkix.Name{CommonName: "ada", Organization: []string{"engineers"}}}
	request.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{shown}}} // as the listener sets it
	user, err := serve.ClientCertificates(request)
	fmt.Println(user.Name, user.Groups, err)
	// Output:
	// true
	// ada [engineers] <nil>
}

// What a user may do is decided by the verb, the resource and the object.
func ExampleConfig_authorize() {
	server, closeGadgets := newGadgets(serve.Config{
		Authorize: func(_ context.Context, u serve.User, r *serve.Request) error {
			if r.IsResource() && r.Verb != "get" && u.Name == serve.Anonymous.Name {
				return fmt.Errorf("%s may not %s %s", u.Name, r.Verb, r.Resource)
			}
			return nil
		},
	})
	defer closeGadgets()
	fmt.Println(send(server, http.MethodPost, gadgetsPath, `{"metadata":{"name":"gear"}}`))
	fmt.Println(send(server, http.MethodGet, gadgetsPath+"/gear", ""))
	fmt.Println(send(server, http.MethodGet, "/version", ""))
	// Output:
	// 403
	// 404
	// 200
}

// Audit gets every request that is over, refused ones included.
func ExampleConfig_audit() {
	server, closeGadgets := newGadgets(serve.Config{
		Audit: func(_ context.Context, e serve.Audited) {
			fmt.Println(e.User.Name, e.Request.Verb, e.Request.Resource, e.Request.Name, e.Code)
		},
	})
	defer closeGadgets()
	send(server, http.MethodPost, gadgetsPath, `{"metadata":{"name":"gear"}}`)
	send(server, http.MethodDelete, gadgetsPath+"/gear", "")
	// Output:
	// system:anonymous create gadgets gear 201
	// system:anonymous delete gadgets gear 200
}

// A limit that is not set has its default.
func ExampleLimits() {
	server, closeGadgets := newGadgets(serve.Config{Limits: serve.Limits{BodyBytes: 100}})
	defer closeGadgets()
	fmt.Println(send(server, http.MethodPost, gadgetsPath, `{"metadata":{"name":"gear"}}`))
	fmt.Println(send(server, http.MethodPost, gadgetsPath, `{"metadata":{"name":"`+strings.Repeat("x", 100)+`"}}`))
	// Output:
	// 201
	// 413
}

// Metrics and alerts name the limits as the server does.
func ExampleAllLimits() {
	for _, limit := range serve.AllLimits() {
		fmt.Println(limit)
	}
	// Output:
	// reads
	// writes
	// reads_per_user
	// writes_per_user
	// watches
	// watches_per_user
	// body
	// bodies
	// write_stall
	// draining
}

// A program with an http.Server of its own gives it the timeouts that suit watches, and shuts
// down first the one that knows of these.
func ExampleServer_Harden() {
	server, closeGadgets := newGadgets(serve.Config{Limits: serve.Limits{ShutdownDelay: 1, DrainWatches: 1}})
	defer closeGadgets()
	own := &http.Server{Handler: server}
	server.Harden(own)
	fmt.Println(own.ReadHeaderTimeout > 0, own.WriteTimeout)
	// own.Serve(listener) would serve now.
	fmt.Println(server.Shutdown(context.Background()), own.Shutdown(context.Background()))
	// Output:
	// true 0s
	// <nil> <nil>
}

// A server that was shut down refuses requests, so that clients go to another one.
func ExampleServer_Shutdown() {
	server, closeGadgets := newGadgets(serve.Config{Limits: serve.Limits{ShutdownDelay: 1, DrainWatches: 1}})
	defer closeGadgets()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	fmt.Println(send(server, http.MethodGet, "/readyz", ""))
	fmt.Println(server.Shutdown(ctx))
	fmt.Println(send(server, http.MethodGet, "/readyz", "") == http.StatusOK, send(server, http.MethodGet, gadgetsPath, ""))
	// Output:
	// 200
	// <nil>
	// false 429
}

// A program that can no longer write to its file wants to be restarted.
func ExampleCheck() {
	var failure error
	server, closeGadgets := newGadgets(serve.Config{
		Checks: []serve.Check{{Name: "file", Live: true, Why: func() error { return failure }}},
		Logger: slog.New(slog.DiscardHandler),
	})
	defer closeGadgets()
	fmt.Println(send(server, http.MethodGet, "/livez", ""), send(server, http.MethodGet, "/readyz", ""))
	failure = errors.New("the disk has failed")
	fmt.Println(send(server, http.MethodGet, "/livez", ""), send(server, http.MethodGet, "/readyz/file", ""))
	// Output:
	// 200 200
	// 500 500
}

func ExampleServer_Stats() {
	server, closeGadgets := newGadgets(serve.Config{})
	defer closeGadgets()
	send(server, http.MethodPost, gadgetsPath, `{"metadata":{"name":"gear"}}`)
	send(server, http.MethodGet, gadgetsPath+"/gear", "")
	s := server.Stats()
	fmt.Println(s.Requests, "requests,", s.InFlight, "in flight,", s.Watches, "watches")
	// Output: 2 requests, 0 in flight, 0 watches
}

// A program learns of a kind while it serves, and later of one that takes its place.
func ExampleServer_Add() {
	server, closeGadgets := newGadgets(serve.Config{})
	defer closeGadgets()
	const path = "/apis/example.com/v1/lamps"
	open := func(columns ...registry.Column[Lamp]) *registry.Store[Lamp] {
		lamps, err := registry.New(registry.Config[Lamp]{Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Lamp"}, Columns: columns})
		if err != nil {
			log.Fatal(err)
		}
		return lamps
	}
	lamps := open()
	fmt.Println(send(server, http.MethodGet, path, ""))
	fmt.Println(server.Add(lamps), send(server, http.MethodGet, path, ""))
	fmt.Println(server.Add(lamps))

	withWatts := open(registry.Column[Lamp]{Name: "Watts", Type: "integer", Value: func(l *Lamp) any { return l.Spec.Watts }})
	fmt.Println(server.Replace(lamps, withWatts), send(server, http.MethodGet, path, ""))
	fmt.Println(server.WaitUnused(context.Background(), lamps), lamps.Close())

	server.Remove(withWatts)
	fmt.Println(send(server, http.MethodGet, path, ""))
	fmt.Println(server.WaitUnused(context.Background(), withWatts), withWatts.Close())
	// Output:
	// 404
	// <nil> 200
	// invalid configuration: Resources has lamps.example.com/v1 twice
	// <nil> 200
	// <nil> <nil>
	// 404
	// <nil> <nil>
}

// The store of a kind that was removed closes once the requests are answered that have found it. One of
// them may be slow, so the wait has a limit.
func ExampleServer_WaitUnused() {
	server, closeGadgets := newGadgets(serve.Config{})
	defer closeGadgets()
	lamps, err := registry.New(registry.Config[Lamp]{Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Lamp"}})
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	fmt.Println(server.Add(lamps))
	fmt.Println(server.WaitUnused(ctx, lamps))
	server.Remove(lamps)
	fmt.Println(server.WaitUnused(ctx, lamps), lamps.Close())
	// Output:
	// <nil>
	// invalid configuration: of has a Provider that is still served; call Remove or Replace before
	// <nil> <nil>
}

// A program that acts on the objects of all kinds need not know their Go types.
func ExampleServer_Resources() {
	server, closeGadgets := newGadgets(serve.Config{})
	defer closeGadgets()
	send(server, http.MethodPost, gadgetsPath, `{"metadata":{"name":"gear"}}`)
	for _, r := range server.Resources() {
		all, err := r.List(context.Background(), engine.ListOptions{Prefix: "default"})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(r.Info().Kind.GroupResource(), all.Len())
	}
	// Output: gadgets.example.com 1
}
