package crd_test

import (
	"context"
	"fmt"
	"log"
	"os"

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
