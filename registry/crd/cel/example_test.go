package cel_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/crd"
	"github.com/watchmill/watchmill/registry/crd/cel"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/serve/apiextensions"
)

// lamps is a definition with a rule about two fields.
const lamps = `{
	"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "lamps.example.com"},
	"spec": {
		"group": "example.com", "scope": "Namespaced", "names": {"plural": "lamps", "kind": "Lamp"},
		"versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
			"type": "object", "properties": {"spec": {
				"type": "object", "properties": {"watts": {"type": "integer"}, "maxWatts": {"type": "integer"}},
				"x-kubernetes-validations": [{"rule": "self.watts <= self.maxWatts", "messageExpression": "'at most %d watts'.format([self.maxWatts])"}]
			}}
		}}}]
	}
}`

// The rules of a manifest hold for all writes of its objects.
func ExampleRules() {
	definitions, err := crd.Options{Rules: cel.Rules{}}.Parse(strings.NewReader(lamps))
	if err != nil {
		log.Fatal(err)
	}
	store, err := registry.New(definitions[0].Config())
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	body := []byte(`{"metadata":{"name":"sun"},"spec":{"watts":101,"maxWatts":60}}`)
	_, err = store.Resources()[0].Create(context.Background(), "default", body, registry.WriteOptions{})
	fmt.Println(err)
	// Output: Lamp "sun" is invalid: spec: Invalid value: at most 60 watts
}

// A client that defines a kind with a rule that does not compile is told so.
func ExampleRules_Check() {
	definitions, err := apiextensions.New(context.Background(), apiextensions.Config{Rules: cel.Rules{}})
	if err != nil {
		log.Fatal(err)
	}
	defer definitions.Close()
	server, err := serve.New(serve.Config{Resources: []serve.Provider{definitions}})
	if err != nil {
		log.Fatal(err)
	}
	body := strings.Replace(lamps, "self.watts <=", "self.volts <=", 1)
	r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/apis/apiextensions.k8s.io/v1/customresourcedefinitions", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	server.ServeHTTP(w, r)
	fmt.Println(w.Code, strings.Contains(w.Body.String(), "undefined field 'volts'"))
	// Output: 422 true
}

func sized(size int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": size}}}
}

// A program without a store evaluates the rules of a schema directly.
func ExampleRules_Compile() {
	evaluate := cel.Rules{}.Compile([]byte(`{"type": "object", "properties": {
		"spec": {"type": "object", "properties": {"size": {"type": "integer"}}, "x-kubernetes-validations": [{"rule": "self.size >= oldSelf.size", "message": "it does not shrink"}]}
	}}`))
	wrong, _ := evaluate(context.Background(), sized(1), sized(2))
	fmt.Println(wrong.ToAggregate())
	wrong, _ = evaluate(context.Background(), sized(3), sized(2))
	fmt.Println(len(wrong))
	// Output:
	// spec: Invalid value: it does not shrink
	// 0
}
