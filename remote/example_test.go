package remote_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http/httptest"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/remote"
	"github.com/watchmill/watchmill/serve"
)

// A replica reads from its own cache, passes writes on, and has its origin's revisions.
func ExampleNew() {
	ctx := context.Background()
	kind := registry.Config[Widget]{
		Kind:   registry.Kind{Group: "example.com", Version: "v1", Kind: "Widget"},
		Engine: engine.Config[Widget]{FirstRevision: 1}, // so that the example's revisions are small
	}
	origin, err := registry.New(kind)
	if err != nil {
		panic(err)
	}
	defer origin.Close()
	server, err := serve.New(serve.Config{Resources: []serve.Provider{origin}})
	if err != nil {
		panic(err)
	}
	listening := httptest.NewServer(server)
	defer listening.Close()

	format, err := registry.FormatOf(kind)
	if err != nil {
		panic(err)
	}
	there, err := remote.New(format, remote.Config{URL: listening.URL})
	if err != nil {
		panic(err)
	}
	defer there.Close()
	kind.Engine = engine.Config[Widget]{Backend: there}
	replica, err := registry.New(kind)
	if err != nil {
		panic(err)
	}
	defer replica.Close()

	made, err := replica.Create(ctx, widget("a", 1), registry.WriteOptions{})
	if err != nil {
		panic(err)
	}
	here, err := replica.Engine().Get(ctx, "default/a", engine.GetOptions{Read: engine.NotOlderThan(made.Revision)})
	fmt.Println(here.Revision, here.Value.Spec.Size, err)
	atOrigin, err := origin.Engine().Get(ctx, "default/a", engine.GetOptions{})
	fmt.Println(atOrigin.Revision, atOrigin.Value.Spec.Size, err)
	// Output:
	// 2 1 <nil>
	// 2 1 <nil>
}

// What a server serves is found out by asking it.
func ExampleKinds() {
	widgets, err := registry.New(registry.Config[Widget]{Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Widget"}})
	if err != nil {
		panic(err)
	}
	defer widgets.Close()
	server, err := serve.New(serve.Config{Resources: []serve.Provider{widgets}})
	if err != nil {
		panic(err)
	}
	listening := httptest.NewServer(server)
	defer listening.Close()

	served, err := remote.Kinds(context.Background(), remote.Config{URL: listening.URL})
	if err != nil {
		panic(err)
	}
	for _, s := range served {
		fmt.Println(s.Kind.Group, s.Kind.Version, s.Kind.Kind)
	}
	// Output: example.com v1 Widget
}

// A private authority has signed the certificate of the server.
func ExampleConfig_tls() {
	kind := registry.Config[Widget]{Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Widget"}}
	origin, err := registry.New(kind)
	if err != nil {
		panic(err)
	}
	defer origin.Close()
	server, err := serve.New(serve.Config{Resources: []serve.Provider{origin}})
	if err != nil {
		panic(err)
	}
	listening := httptest.NewTLSServer(server)
	defer listening.Close()

	authorities := x509.NewCertPool()
	authorities.AddCert(listening.Certificate())
	format, err := registry.FormatOf(kind)
	if err != nil {
		panic(err)
	}
	there, err := remote.New(format, remote.Config{URL: listening.URL, TLS: &tls.Config{RootCAs: authorities}})
	if err != nil {
		panic(err)
	}
	defer there.Close()
	revision, err := there.Revision(context.Background())
	fmt.Println(revision > 0, err)
	// Output: true <nil>
}
