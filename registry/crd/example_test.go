package crd_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/crd"
)

func ExampleParse() {
	file, err := os.Open("testdata/widgets.yaml")
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	definitions, err := crd.Parse(file)
	if err != nil {
		log.Fatal(err)
	}
	widgets, err := registry.New(definitions[0].Config())
	if err != nil {
		log.Fatal(err)
	}
	defer widgets.Close()
	body := []byte(`{"metadata":{"name":"a"},"spec":{"size":101}}`)
	_, err = widgets.Resources()[0].Create(context.Background(), "default", body, registry.WriteOptions{})
	fmt.Println(err)
	// Output: Widget "a" is invalid: spec.size: Invalid value: 101: spec.size in body should be less than or equal to 100
}

// A definition that a client has sent is an object, and not a file.
func ExampleDefine() {
	var o unstructured.Unstructured
	err := o.UnmarshalJSON([]byte(`{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "gears.example.com"},
		"spec": {
			"group": "example.com", "scope": "Cluster", "names": {"plural": "gears", "kind": "Gear"},
			"versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]
		}
	}`))
	if err != nil {
		log.Fatal(err)
	}
	definition, err := crd.Define(&o)
	fmt.Println(definition.Kind.GroupVersionKind(), err)
	o.SetName("other")
	_, err = crd.Define(&o)
	fmt.Println(err)
	// Output:
	// example.com/v1, Kind=Gear <nil>
	// CustomResourceDefinition "other": metadata.name must be "gears.example.com": plural and group
}
