package crd_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

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

// noSecrets takes every rule for one that refuses objects with a password: rules in CEL are
// evaluated by package registry/crd/cel.
type noSecrets struct{}

func (noSecrets) Check(definition, old json.RawMessage) field.ErrorList { return nil }

func (noSecrets) Compile(schema json.RawMessage) crd.Evaluate {
	return func(_ context.Context, o, _ *unstructured.Unstructured) (field.ErrorList, []string) {
		if _, found, _ := unstructured.NestedString(o.Object, "spec", "password"); found {
			return field.ErrorList{field.Forbidden(field.NewPath("spec", "password"), "use a Secret")}, nil
		}
		return nil, nil
	}
}

// With Options rules have an effect.
func ExampleOptions() {
	const manifest = `{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "users.example.com"},
		"spec": {
			"group": "example.com", "scope": "Cluster", "names": {"plural": "users", "kind": "User"},
			"versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
				"type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-validations": [{"rule": "!has(self.password)"}]}}
			}}}]
		}
	}`
	definitions, err := crd.Options{Rules: noSecrets{}}.Parse(strings.NewReader(manifest))
	if err != nil {
		log.Fatal(err)
	}
	users, err := registry.New(definitions[0].Config())
	if err != nil {
		log.Fatal(err)
	}
	defer users.Close()
	_, err = users.Resources()[0].Create(context.Background(), "", []byte(`{"metadata":{"name":"a"},"spec":{"password":"b"}}`), registry.WriteOptions{})
	fmt.Println(err)

	definitions, err = crd.Parse(strings.NewReader(manifest))
	fmt.Println(definitions[0].Notes, err)
	// Output:
	// User "a" is invalid: spec.password: Forbidden: use a Secret
	// [1 x-kubernetes-validations rules of version v1 are not evaluated] <nil>
}

// A definition that replaces another is read beside it.
func ExampleOptions_Define() {
	var before unstructured.Unstructured
	err := before.UnmarshalJSON([]byte(`{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "gears.example.com"},
		"spec": {
			"group": "example.com", "scope": "Cluster", "names": {"plural": "gears", "kind": "Gear"},
			"versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]
		}
	}`))
	if err != nil {
		log.Fatal(err)
	}
	after := before.DeepCopy()
	if err := unstructured.SetNestedStringSlice(after.Object, []string{"g"}, "spec", "names", "shortNames"); err != nil {
		log.Fatal(err)
	}
	definition, err := crd.Options{Rules: noSecrets{}}.Define(after, &before)
	fmt.Println(definition.Kind.ShortNames, err)
	// Output: [g] <nil>
}
