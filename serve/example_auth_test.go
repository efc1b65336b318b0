package serve_test

import (
	"context"
	"errors"
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

// An administrator sees what others may do by sending their requests, as kubectl --as does.
func ExampleConfig_impersonation() {
	gadgets, err := registry.New(registry.Config[Gadget]{Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Gadget"}})
	if err != nil {
		log.Fatal(err)
	}
	defer gadgets.Close()
	server, err := serve.New(serve.Config{
		Resources:     []serve.Provider{gadgets},
		Authenticate:  serve.BearerTokens(map[string]serve.User{"s3cret": {Name: "ada"}, "0ther": {Name: "bob"}}),
		Impersonation: true,
		Authorize: func(_ context.Context, u serve.User, r *serve.Request) error {
			if u.Name == "ada" || r.Verb == "get" || r.Verb == "list" {
				return nil
			}
			return errors.New("ada may, and all read")
		},
		Audit: func(_ context.Context, e serve.Audited) {
			if e.Impersonated != nil {
				fmt.Println(e.User.Name, "as", e.Impersonated.Name, e.Impersonated.Groups, e.Request.Verb, e.Code)
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	send := func(method, token, as string) (code int) {
		request := httptest.NewRequest(method, "http://127.0.0.1/apis/example.com/v1/namespaces/default/gadgets/gear", nil)
		request.Header.Set("Authorization", "Bearer "+token)
		request.Header.Set("Impersonate-User", as)
		answer := httptest.NewRecorder()
		server.ServeHTTP(answer, request)
		return answer.Code
	}
	fmt.Println(send(http.MethodGet, "s3cret", "bob"))
	fmt.Println(send(http.MethodDelete, "s3cret", "bob"))
	fmt.Println(send(http.MethodDelete, "0ther", "ada"))
	// Output:
	// ada as bob [system:authenticated] get 404
	// 404
	// ada as bob [system:authenticated] delete 403
	// 403
	// 403
}
