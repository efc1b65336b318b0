package protobuf_test

import (
	"fmt"
	"log"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/protobuf"
)

// A kind of Kubernetes' API types takes the protobuf that typed clients send.
func ExampleDecoders() {
	things, err := registry.New(registry.Config[Thing]{
		Kind:     registry.Kind{Group: "example.com", Version: "v1", Kind: "Thing"},
		Decoders: protobuf.Decoders[Thing]("Thing"),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer things.Close()
	for media := range things.Resources()[0].Info().Decoders {
		fmt.Println(media)
	}
	// Output: application/vnd.kubernetes.protobuf
}
