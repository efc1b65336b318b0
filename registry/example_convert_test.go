package registry_test

import (
	"context"
	"fmt"
	"log"

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
