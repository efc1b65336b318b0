package serve_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
)

// Gadget is a kind: any struct that embeds these two.
type Gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Teeth int `json:"teeth" description:"How many teeth it has."`
	} `json:"spec"`
}

func ExampleNew() {
	gadgets, err := registry.New(registry.Config[Gadget]{
		Kind:    registry.Kind{Group: "example.com", Version: "v1", Kind: "Gadget"},
		Columns: []registry.Column[Gadget]{{Name: "Teeth", Type: "integer", Value: func(g *Gadget) any { return g.Spec.Teeth }}},
		Strategy: registry.Strategy[Gadget]{Validate: func(_ context.Context, g, _ *Gadget) field.ErrorList {
			return validation.ValidateNonnegativeField(int64(g.Spec.Teeth), field.NewPath("spec", "teeth"))
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer gadgets.Close()
	handler, err := serve.New(serve.Config{Resources: []serve.Provider{gadgets}})
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(handler)
	defer server.Close()

	path := server.URL + "/apis/example.com/v1/namespaces/default/gadgets"
	for _, body := range []string{`{"metadata":{"name":"gear"},"spec":{"teeth":12}}`, `{"metadata":{"name":"odd"},"spec":{"teeth":-1}}`} {
		resp, err := http.Post(path, "application/json", strings.NewReader(body))
		if err != nil {
			log.Fatal(err)
		}
		_, err = io.Copy(io.Discard, resp.Body)
		if err != nil {
			log.Fatal(err)
		}
		resp.Body.Close()
		fmt.Println(resp.Status)
	}
	// Output:
	// 201 Created
	// 422 Unprocessable Entity
}

func ExampleServer_ListenAndServe() {
	gadgets, err := registry.New(registry.Config[Gadget]{Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Gadget"}})
	if err != nil {
		log.Fatal(err)
	}
	defer gadgets.Close()
	ctx, stop := context.WithCancel(context.Background())
	server, err := serve.New(serve.Config{
		Resources: []serve.Provider{gadgets},
		Limits:    serve.Limits{ShutdownDelay: 1, DrainWatches: 1}, // none: this is an example
	})
	if err != nil {
		log.Fatal(err)
	}
	stop() // a program would wait for a signal
	fmt.Println(server.ListenAndServe(ctx, serve.ListenOptions{Address: "127.0.0.1:0"}))
	// Output: <nil>
}

// A server with the default settings is for programs of its machine alone.
func ExampleListenAndServe() {
	gadgets, err := registry.New(registry.Config[Gadget]{Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Gadget"}})
	if err != nil {
		log.Fatal(err)
	}
	defer gadgets.Close()
	fmt.Println(serve.ListenAndServe(context.Background(), "0.0.0.0:8080", gadgets))
	// Output: invalid configuration: ListenOptions.Address is 0.0.0.0:8080, which others can reach: give TLS and Config.Authenticate, or set Insecure
}
