package engine_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/watchmill/watchmill/engine"
)

// A topic needs no settings. Every subscriber gets every message that is published after it
// has subscribed.
func ExampleNewTopic() {
	ctx := context.Background()
	orders := engine.NewTopic[Order]()
	var first, second int
	_, err := orders.Subscribe(ctx, func(o Order) { first += o.ID })
	must(err)
	_, err = orders.Publish(ctx, Order{ID: 1})
	must(err)
	_, err = orders.Subscribe(ctx, func(o Order) { second += o.ID })
	must(err)
	_, err = orders.Publish(ctx, Order{ID: 2})
	must(err)
	must(orders.Drain(ctx)) // so that both have handled everything
	fmt.Println(first, second)
	// Output: 3 2
}

// Messages that are kept are for subscribers that come later. Wrong options are told by the
// first call.
func ExampleNewTopicWith() {
	ctx := context.Background()
	orders := engine.NewTopicWith[Order](engine.TopicOptions{Replay: 10})
	for id := range 3 {
		_, err := orders.Publish(ctx, Order{ID: id})
		must(err)
	}
	_, err := orders.SubscribeWith(ctx, engine.SubscribeOptions{Last: 10}, func(o Order) { fmt.Println("order", o.ID) })
	must(err)
	must(orders.Drain(ctx))

	wrong := engine.NewTopicWith[Order](engine.TopicOptions{Replay: -1})
	defer wrong.Close()
	_, err = wrong.Publish(ctx, Order{})
	fmt.Println(errors.Is(err, engine.ErrConfig))
	// Output:
	// order 0
	// order 1
	// order 2
	// true
}

// A subscription resumes after a revision, such as that of the last message that was handled.
func ExampleTopic_SubscribeWith() {
	ctx := context.Background()
	orders := engine.NewTopic[Order]()
	var handled engine.Revision
	for id := range 3 {
		rev, err := orders.Publish(ctx, Order{ID: id})
		must(err)
		if id == 0 {
			handled = rev
		}
	}
	_, err := orders.SubscribeWith(ctx, engine.SubscribeOptions{From: handled, Name: "billing"}, func(o Order) { fmt.Println("order", o.ID) })
	must(err)
	must(orders.Drain(ctx))
	// Output:
	// order 1
	// order 2
}

// A watch of a topic shows the revisions, too.
func ExampleTopic_Watch() {
	ctx := context.Background()
	orders := engine.NewTopicWith[Order](engine.TopicOptions{FirstRevision: 1})
	defer orders.Close()
	w, err := orders.Watch(ctx, engine.SubscribeOptions{})
	must(err)
	_, err = orders.Publish(ctx, Order{ID: 7})
	must(err)
	events, err := w.Next(ctx)
	must(err)
	fmt.Println(events[0].Type, events[0].Revision, events[0].Object.Value.ID)
	// Output: EMITTED 2 7
}

// Close drops messages that were not handled. Drain does not.
func ExampleTopic_Close() {
	ctx := context.Background()
	orders := engine.NewTopic[Order]()
	sub, err := orders.Subscribe(ctx, func(Order) {})
	must(err)
	fmt.Println(orders.Close(), errors.Is(sub.Err(), engine.ErrEngineClosed))
	_, err = orders.Publish(ctx, Order{})
	fmt.Println(errors.Is(err, engine.ErrEngineClosed))
	// Output:
	// <nil> true
	// true
}

// The counters of a topic.
func ExampleTopic_Stats() {
	ctx := context.Background()
	orders := engine.NewTopic[Order]()
	_, err := orders.Subscribe(ctx, func(Order) {})
	must(err)
	for id := range 3 {
		_, err := orders.Publish(ctx, Order{ID: id})
		must(err)
	}
	fmt.Println(orders.Stats().Watches, "subscription")
	must(orders.Drain(ctx))
	fmt.Println(orders.Stats().Events, "messages")
	// Output:
	// 1 subscription
	// 3 messages
}

// A handler may stop its own subscription: it is not called again.
func ExampleSubscription_Stop() {
	ctx := context.Background()
	orders := engine.NewTopic[Order]()
	defer orders.Close()
	subscribed := make(chan *engine.Subscription, 1)
	sub, err := orders.Subscribe(ctx, func(o Order) {
		fmt.Println("order", o.ID)
		(<-subscribed).Stop()
	})
	must(err)
	subscribed <- sub
	for id := range 3 {
		_, err := orders.Publish(ctx, Order{ID: id})
		must(err)
	}
	must(sub.Wait(ctx))
	fmt.Println(errors.Is(sub.Err(), engine.ErrStopped))
	// Output:
	// order 0
	// true
}

// Everything up to a subscription's revision was handled: another one continues there.
func ExampleSubscription_Revision() {
	ctx := context.Background()
	orders := engine.NewTopic[Order]()
	handled := make(chan int)
	first, err := orders.Subscribe(ctx, func(o Order) { handled <- o.ID })
	must(err)
	_, err = orders.Publish(ctx, Order{ID: 1})
	must(err)
	fmt.Println("first:", <-handled)
	first.Stop()
	must(first.Wait(ctx))
	_, err = orders.Publish(ctx, Order{ID: 2})
	must(err)
	_, err = orders.SubscribeWith(ctx, engine.SubscribeOptions{From: first.Revision()}, func(o Order) { fmt.Println("second:", o.ID) })
	must(err)
	must(orders.Drain(ctx))
	// Output:
	// first: 1
	// second: 2
}

// A subscription whose handler is stuck shows by what it has not handled, and delays neither
// the publisher nor other subscriptions.
func ExampleSubscription_Lag() {
	ctx := context.Background()
	orders := engine.NewTopic[Order]()
	defer orders.Close()
	began, stuck := make(chan struct{}, 3), make(chan struct{})
	billing, err := orders.Subscribe(ctx, func(Order) { began <- struct{}{}; <-stuck })
	must(err)
	for id := range 3 {
		_, err := orders.Publish(ctx, Order{ID: id})
		must(err)
	}
	<-began
	fmt.Println("behind:", billing.Lag() > 0, billing.Behind() >= 0)
	close(stuck)
	must(orders.Drain(ctx))
	<-billing.Done()
	fmt.Println("behind:", billing.Lag() > 0, errors.Is(billing.Err(), engine.ErrEngineClosed))
	// Output:
	// behind: true true
	// behind: false true
}
