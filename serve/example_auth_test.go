package serve_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
)

// A user shows a certificate that the TLS listener has verified, or else a token.
func ExampleFirstOf() {
	gadgets, err := registry.New(registry.Config[Gadget]{Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Gadget"}})
	if err != nil {
		log.Fatal(err)
	}
	defer gadgets.Close()
	server, err := serve.New(serve.Config{
		Resources: []serve.Provider{gadgets},
		Authenticate: serve.FirstOf(serve.ClientCertificates, serve.BearerTokens(map[string]serve.User{
			"s3cret": {Name: "ada", Groups: []string{"engineers"}},
		})),
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, token := range []string{"", "guessed", "s3cret"} {
		request := httptest.NewRequest(http.MethodGet, "http://127.0.0.1/apis/example.com/v1/gadgets", nil)
		request.Header.Set("Authorization", "Bearer "+token)
		answer := httptest.NewRecorder()
		server.ServeHTTP(answer, request)
		fmt.Println(answer.Code)
	}
	// Output:
	// 401
	// 401
	// 200
}

// A kind records which user has made an object.
func ExampleUserOf() {
	gadgets, err := registry.New(registry.Config[Gadget]{
		Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Gadget"},
		Strategy: registry.Strategy[Gadget]{Prepare: func(ctx context.Context, gadget, old *Gadget) {
			if u, found := serve.UserOf(ctx); found && old == nil {
				gadget.Annotations = map[string]string{"example.com/made-by": u.Name}
			}
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer gadgets.Close()
	server, err := serve.New(serve.Config{
		Resources:    []serve.Provider{gadgets},
		Authenticate: serve.BearerTokens(map[string]serve.User{"s3cret": {Name: "ada"}}),
	})
	if err != nil {
		log.Fatal(err)
	}
	request := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/apis/example.com/v1/namespaces/default/gadgets", strings.NewReader(`{"metadata":{"name":"gear"}}`))
	request.Header.Set("Authorization", "Bearer s3cret")
	server.ServeHTTP(httptest.NewRecorder(), request)
	gear, err := gadgets.Engine().Get(context.Background(), "default/gear", engine.GetOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(gear.Value.Annotations["example.com/made-by"])
	// Output: ada
}
