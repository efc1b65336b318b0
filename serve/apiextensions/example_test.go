package apiextensions_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/crd"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/serve/apiextensions"
)

// lamps is a definition as users write it, in JSON.
const lamps = `{
	"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "lamps.example.com"},
	"spec": {
		"group": "example.com", "scope": "Namespaced", "names": {"plural": "lamps", "kind": "Lamp"},
		"versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
			"type": "object", "properties": {"spec": {"type": "object", "properties": {"watts": {"type": "integer", "maximum": 100}}}}
		}}}]
	}
}`

// newServer returns a server of the kinds that clients define, and what closes them.
func newServer(ctx context.Context) (*apiextensions.Definitions, *serve.Server) {
	definitions, err := apiextensions.New(ctx, apiextensions.Config{})
	if err != nil {
		log.Fatal(err)
	}
	server, err := serve.New(serve.Config{Resources: []serve.Provider{definitions}})
	if err != nil {
		log.Fatal(err)
	}
	if err := definitions.Start(ctx, server); err != nil {
		log.Fatal(err)
	}
	return definitions, server
}

// established waits until the kind of a definition is served.
func established(ctx context.Context, definitions *apiextensions.Definitions, name string) {
	w, err := definitions.Store().Engine().Watch(ctx, engine.WatchOptions{Key: name, InitialState: true})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Stop()
	for ev := range w.Events() {
		conditions, _, _ := unstructured.NestedSlice(ev.Object.Value.Object, "status", "conditions")
		for _, c := range conditions {
			if c.(map[string]any)["type"] == "Established" {
				return
			}
		}
	}
}

// A client defines a kind, and then creates an object of it.
func ExampleNew() {
	definitions, server := newServer(context.Background())
	defer definitions.Close()
	post := func(path, body string) int {
		r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1"+path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		return w.Code
	}
	const path = "/apis/example.com/v1/namespaces/default/lamps"
	fmt.Println(post(path, `{"metadata": {"name": "desk"}, "spec": {"watts": 9}}`))

	fmt.Println(post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", lamps))
	established(context.Background(), definitions, "lamps.example.com")
	fmt.Println(post(path, `{"metadata": {"name": "desk"}, "spec": {"watts": 9}}`))
	fmt.Println(post(path, `{"metadata": {"name": "sun"}, "spec": {"watts": 101}}`))
	// Output:
	// 404
	// 201
	// 201
	// 422
}

// A program defines a kind without a client.
func ExampleDefinitions_Store() {
	definitions, server := newServer(context.Background())
	defer definitions.Close()
	var lamp unstructured.Unstructured
	if err := lamp.UnmarshalJSON([]byte(lamps)); err != nil {
		log.Fatal(err)
	}
	_, err := definitions.Store().Create(context.Background(), lamp, registry.WriteOptions{})
	fmt.Println(err)
	established(context.Background(), definitions, "lamps.example.com")
	w := httptest.NewRecorder()
	server.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1/apis/example.com/v1/lamps", nil))
	fmt.Println(w.Code)
	// Output:
	// <nil>
	// 200
}

// A program that serves a kind by its manifest also shows the manifest.
func ExampleNewStatic() {
	ctx := context.Background()
	defined, err := crd.Parse(strings.NewReader(lamps))
	if err != nil {
		log.Fatal(err)
	}
	lamp, err := registry.New(defined[0].Config())
	if err != nil {
		log.Fatal(err)
	}
	defer lamp.Close()
	definitions, err := apiextensions.NewStatic(ctx, apiextensions.StaticConfig{Manifests: []*unstructured.Unstructured{defined[0].Manifest}})
	if err != nil {
		log.Fatal(err)
	}
	defer definitions.Close()
	server, err := serve.New(serve.Config{Resources: []serve.Provider{lamp, definitions}})
	if err != nil {
		log.Fatal(err)
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		w := httptest.NewRecorder()
		server.ServeHTTP(w, httptest.NewRequest(method, "http://127.0.0.1/apis/apiextensions.k8s.io/v1/customresourcedefinitions/lamps.example.com", nil))
		fmt.Println(w.Code)
	}
	// Output:
	// 200
	// 405
}

// A replica shows the definitions of another server in the same tables.
func ExampleColumns() {
	config := registry.Config[unstructured.Unstructured]{
		Kind:    registry.Kind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition", ClusterScoped: true, Status: true},
		Columns: apiextensions.Columns(), NoAge: true,
	}
	for _, column := range config.Columns {
		fmt.Print(column.Name, "; ")
	}
	// Output: Scope; Versions; Created At; Group; Kind; ShortNames; Established;
}
