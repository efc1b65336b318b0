package serve_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

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
