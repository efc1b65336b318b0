package registry_test

import (
	"context"
	"fmt"
	"log"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
)

// Gadget is a kind: any struct that embeds these two.
type Gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Teeth             int `json:"teeth"`
}

func Example() {
	ctx := context.Background()
	gadgets, err := registry.New(registry.Config[Gadget]{
		Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Gadget"},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer gadgets.Close()
	gear := Gadget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "gear"}, Teeth: 12}
	o, err := gadgets.Create(ctx, gear, registry.WriteOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(o.Key, o.Value.Kind, o.Value.Generation)
	o, _, err = gadgets.Update(ctx, o.Key, func(old *engine.Object[Gadget]) (Gadget, error) {
		next := old.Value
		next.Teeth = 24
		return next, nil
	}, registry.WriteOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(o.Value.Teeth, o.Value.Generation)
	// Output:
	// default/gear Gadget 1
	// 24 2
}
