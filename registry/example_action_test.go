package registry_test

import (
	"context"
	"fmt"
	"log"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/registry"
)

// Eviction asks for the deletion of a widget, by a rule that knows when widgets may go.
type Eviction struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Reason            string `json:"reason,omitempty"`
}

// A client posts an eviction to …/widgets/a/eviction. A server has the action beside the store:
// serve.Config.Resources is both.
func ExampleNewAction() {
	widgets, err := registry.New(config())
	if err != nil {
		log.Fatal(err)
	}
	defer widgets.Close()
	ctx := context.Background()
	if _, err := widgets.Create(ctx, widget("a", 1), registry.WriteOptions{}); err != nil {
		log.Fatal(err)
	}
	evictions, err := registry.NewAction(registry.ActionConfig[Eviction]{
		Of: config().Kind, Subresource: "eviction",
		Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Eviction"},
		Do: func(ctx context.Context, key string, e *Eviction, opts registry.WriteOptions) error {
			_, _, err := widgets.Delete(ctx, key, registry.DeleteOptions{DryRun: opts.DryRun})
			return err
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	eviction := evictions.Resources()[0].(registry.Actor)
	for range 2 {
		_, err := eviction.Act(ctx, "default/a", []byte(`{"reason":"it is in the way"}`), registry.WriteOptions{})
		fmt.Println(err)
	}
	// Output:
	// <nil>
	// "default/a": not found
}
