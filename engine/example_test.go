package engine_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store/backend"
)

type order struct {
	ID    int
	Total string
}

func ExampleTopic() {
	ctx := context.Background()
	orders := engine.NewTopic[order]()
	defer orders.Close()

	handled := make(chan struct{})
	sub, err := orders.Subscribe(ctx, func(o order) {
		fmt.Println("order", o.ID, o.Total)
		close(handled)
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := orders.Publish(ctx, order{ID: 1, Total: "9.99"}); err != nil {
		fmt.Println(err)
		return
	}
	<-handled
	sub.Stop()
	fmt.Println("stopped:", errors.Is(sub.Err(), engine.ErrStopped))
	// Output:
	// order 1 9.99
	// stopped: true
}

// A handler that publishes to its own topic does not wait for itself.
func ExampleTopic_Publish() {
	ctx := context.Background()
	countdown := engine.NewTopic[int]()
	defer countdown.Close()
	liftoff := make(chan struct{})
	_, _ = countdown.Subscribe(ctx, func(n int) {
		fmt.Println(n)
		if n == 0 {
			close(liftoff)
			return
		}
		_, _ = countdown.Publish(ctx, n-1)
	})
	_, _ = countdown.Publish(ctx, 3)
	<-liftoff
	// Output:
	// 3
	// 2
	// 1
	// 0
}

// The newest messages can be replayed to late subscribers.
func ExampleTopic_Messages() {
	ctx := context.Background()
	prices := engine.NewTopicWith[string](engine.TopicOptions{Replay: 10})
	defer prices.Close()
	var last engine.Revision
	for _, p := range []string{"1.10", "1.12", "1.15"} {
		last, _ = prices.Publish(ctx, p)
	}
	for p, err := range prices.Messages(ctx, engine.SubscribeOptions{From: last - 2}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(p)
		if p == "1.15" {
			break
		}
	}
	// Output:
	// 1.12
	// 1.15
}

// A subscription's revision is where the next one goes on.
func ExampleTopic_Subscribe() {
	ctx := context.Background()
	jobs := engine.NewTopic[string]()
	defer jobs.Close()
	handled := make(chan string)
	handle := func(job string) { handled <- job }

	first, _ := jobs.Publish(ctx, "sweep")
	_, _ = jobs.Publish(ctx, "mop")
	sub, err := jobs.SubscribeWith(ctx, engine.SubscribeOptions{From: first}, handle)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(<-handled)
	sub.Stop()
	// Output:
	// mop
}

// After Stop a call of the handler may still be under way; Wait returns when it is over.
func ExampleSubscription_Wait() {
	ctx := context.Background()
	jobs := engine.NewTopic[string]()
	defer jobs.Close()
	handled := make(chan string, 1)
	sub, _ := jobs.Subscribe(ctx, func(job string) { handled <- job })
	_, _ = jobs.Publish(ctx, "sweep")
	fmt.Println(<-handled)
	sub.Stop()
	_ = sub.Wait(ctx)
	close(handled) // no call sends to it any more
	// Output: sweep
}

// A mirror lists, then watches from the list's revision. Package informer has
// one that is ready to use.
func ExampleEngine_Source() {
	ctx := context.Background()
	pods := newPods()
	defer pods.Close()
	pods.Create(ctx, Pod{Namespace: "default", Name: "db"})

	source := pods.Source()
	list, err := source.List(ctx, backend.ListOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("listed", len(list.Items))
	more := make(chan struct{}, 1)
	watch, err := source.Watch(ctx, backend.WatchOptions{From: list.Revision, Notify: func() {
		select {
		case more <- struct{}{}:
		default: // it has been notified already
		}
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer watch.Close()
	pods.Create(ctx, Pod{Namespace: "default", Name: "web"})
	for {
		batch, err := watch.Next(100)
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, ev := range batch.Events {
			fmt.Println(ev.Type, ev.Key())
			return
		}
		<-more
	}
	// Output:
	// listed 1
	// ADDED default/web
}
