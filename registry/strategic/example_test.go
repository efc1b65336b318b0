package strategic_test

import (
	"context"
	"fmt"
	"log"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/strategic"
)

type Clock struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Hands             []Hand `json:"hands,omitempty" patchMergeKey:"name" patchStrategy:"merge"`
}

type Hand struct {
	Name   string `json:"name"`
	Length int    `json:"length,omitempty"`
}

// A patch names the hand that it changes, and leaves the other as it is.
func Example() {
	ctx := context.Background()
	clocks, err := registry.New(registry.Config[Clock]{
		Kind:           registry.Kind{Group: "example.com", Version: "v1", Kind: "Clock"},
		StrategicMerge: strategic.New,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer clocks.Close()
	clock := Clock{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "tower"}, Hands: []Hand{{"hour", 5}, {"minute", 8}}}
	if _, err := clocks.Create(ctx, clock, registry.WriteOptions{}); err != nil {
		log.Fatal(err)
	}
	resource := clocks.Resources()[0]
	patch, err := resource.Info().ParsePatch(registry.StrategicPatch, []byte(`{"hands":[{"name":"minute","length":9}]}`))
	if err != nil {
		log.Fatal(err)
	}
	_, _, err = resource.Update(ctx, "default/tower", func(live registry.Item) ([]byte, error) {
		document, err := live.JSON()
		if err != nil {
			return nil, err
		}
		return patch.Apply(document)
	}, registry.WriteOptions{})
	if err != nil {
		log.Fatal(err)
	}
	o, err := clocks.Engine().Get(ctx, "default/tower", engine.GetOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(o.Value.Hands)
	// Output: [{hour 5} {minute 9}]
}

// Definitions of kinds are not of a Go type here: a list that the patch has takes the place of the whole list.
func ExampleUntagged() {
	merge, err := strategic.Untagged(nil)
	if err != nil {
		log.Fatal(err)
	}
	object := map[string]any{"spec": map[string]any{"scope": "Cluster", "versions": []any{"v1", "v2"}}}
	merged, err := merge(object, map[string]any{"spec": map[string]any{"versions": []any{"v3"}}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(merged)
	// Output: map[spec:map[scope:Cluster versions:[v3]]]
}
