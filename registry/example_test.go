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

// Valve is a kind with a status, which a subresource of its own changes.
type Valve struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Open bool `json:"open"`
	} `json:"spec"`
	Status struct {
		Pressure int `json:"pressure,omitempty"`
	} `json:"status"`
}

// A controller reports what it has seen. What it changes of the spec does not count.
func ExampleStore_UpdateStatus() {
	ctx := context.Background()
	valves, err := registry.New(registry.Config[Valve]{
		Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Valve", Status: true},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer valves.Close()
	inlet := Valve{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "inlet"}}
	if _, err := valves.Create(ctx, inlet, registry.WriteOptions{}); err != nil {
		log.Fatal(err)
	}
	o, err := valves.UpdateStatus(ctx, "default/inlet", func(old *engine.Object[Valve]) (Valve, error) {
		next := old.Value
		next.Status.Pressure, next.Spec.Open = 7, true
		return next, nil
	}, registry.WriteOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("pressure:", o.Value.Status.Pressure, "open:", o.Value.Spec.Open, "generation:", o.Value.Generation)
	// Output: pressure: 7 open: false generation: 1
}

// Everything in one namespace is deleted, one object after the other.
func ExampleStore_DeleteCollection() {
	ctx := context.Background()
	gadgets, err := registry.New(registry.Config[Gadget]{
		Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Gadget"},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer gadgets.Close()
	for _, namespace := range []string{"test", "test", "default"} {
		gear := Gadget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "gear-"}}
		if _, err := gadgets.Create(ctx, gear, registry.WriteOptions{}); err != nil {
			log.Fatal(err)
		}
	}
	deleted, err := gadgets.DeleteCollection(ctx, engine.ListOptions{Prefix: "test/"}, registry.DeleteOptions{})
	fmt.Println(deleted, err)
	// Output: 2 <nil>
}
