package registry_test

import (
	"context"
	"fmt"
	"log"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// Widgets that were stored before there were colors have one when they are read.
func ExampleConversion() {
	ctx := context.Background()
	cfg := registry.Config[Widget]{Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Widget"}}
	storage, err := memory.New(registry.Schema(cfg), memory.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer storage.Close()
	cfg.Engine.Backend = storage
	before, err := registry.New(cfg)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := before.Create(ctx, widget("w", 5), registry.WriteOptions{}); err != nil {
		log.Fatal(err)
	}
	before.Close()

	cfg.Conversion = &registry.Conversion[Widget]{FromStorage: func(w Widget) (Widget, bool) {
		if w.Spec.Color != "" {
			return w, false
		}
		w.Spec.Color = "grey"
		return w, true
	}}
	now, err := registry.New(cfg)
	if err != nil {
		log.Fatal(err)
	}
	defer now.Close()
	w, err := now.Engine().Get(ctx, "default/w", engine.GetOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%+v\n", w.Value.Spec)
	// Output: {Size:5 Color:grey}
}

// Door is a kind of two versions: v1 has the width in millimetres, v1beta1 in centimetres.
type Door struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Millimetres       int `json:"millimetres,omitempty"`
	Centimetres       int `json:"centimetres,omitempty"`
}

// inCentimetres converts doors of v1beta1, since storage has those of v1.
var inCentimetres = registry.Conversion[Door]{
	ToStorage: func(d Door) (Door, bool) {
		d.APIVersion, d.Millimetres, d.Centimetres = "example.com/v1", 10*d.Centimetres, 0
		return d, true
	},
	FromStorage: func(d Door) (Door, bool) {
		d.APIVersion, d.Millimetres, d.Centimetres = "example.com/v1beta1", 0, d.Millimetres/10
		return d, true
	},
}

// The versions of a kind are stores of one Go type over one backend. Each has rules of its own, which should
// refuse the fields of the other. A server of both shows the objects in either version.
func ExampleConversion_versions() {
	ctx := context.Background()
	v1 := registry.Config[Door]{Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Door"}}
	storage, err := memory.New(registry.Schema(v1), memory.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer storage.Close()
	v1.Engine.Backend = storage
	v1beta1 := v1
	v1beta1.Kind.Version, v1beta1.StorageVersion = "v1beta1", "v1"
	v1beta1.Conversion = &inCentimetres
	inNew, err := registry.New(v1)
	if err != nil {
		log.Fatal(err)
	}
	defer inNew.Close()
	inOld, err := registry.New(v1beta1)
	if err != nil {
		log.Fatal(err)
	}
	defer inOld.Close()

	door := Door{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "front"}, Centimetres: 90}
	if _, err := inOld.Create(ctx, door, registry.WriteOptions{}); err != nil {
		log.Fatal(err)
	}
	_, _, err = inNew.Update(ctx, "default/front", func(old *engine.Object[Door]) (Door, error) {
		fmt.Println(old.Value.APIVersion, old.Value.Millimetres, "mm")
		wider := old.Value
		wider.Millimetres += 100
		return wider, nil
	}, registry.WriteOptions{})
	if err != nil {
		log.Fatal(err)
	}
	o, err := inOld.Engine().Get(ctx, "default/front", engine.GetOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(o.Value.APIVersion, o.Value.Centimetres, "cm")
	// Output:
	// example.com/v1 900 mm
	// example.com/v1beta1 100 cm
}
