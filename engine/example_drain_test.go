package engine_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/watchmill/watchmill/engine"
)

func ExampleEngine_Drain() {
	ctx := context.Background()
	pods := newPods()
	handled := 0
	_, _ = pods.Handle(ctx, engine.WatchOptions{}, func(engine.Event[Pod]) { handled++ })
	for _, name := range []string{"web-1", "web-2", "web-3"} {
		_, _ = pods.Create(ctx, Pod{Namespace: "default", Name: name})
	}
	fmt.Println(pods.Drain(ctx), handled)
	_, err := pods.Create(ctx, Pod{Namespace: "default", Name: "web-4"})
	fmt.Println(errors.Is(err, engine.ErrEngineClosed))
	// Output:
	// <nil> 3
	// true
}

func ExampleTopic_Drain() {
	ctx := context.Background()
	orders := engine.NewTopic[Order]()
	handled := 0
	_, _ = orders.Subscribe(ctx, func(Order) { handled++ })
	for n := range 100 {
		_, _ = orders.Publish(ctx, Order{ID: n})
	}
	fmt.Println(orders.Drain(ctx), handled)
	// Output: <nil> 100
}
