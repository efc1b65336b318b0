package actors_test

import (
	"context"
	"fmt"
	"time"

	"github.com/watchmill/watchmill/actors"
)

// adder sums what it is offered and says so once per batch.
type adder struct{ sum int }

func (a *adder) Receive(_ *actors.Context, n int) { a.sum += n }

func (a *adder) Flush(*actors.Context) { fmt.Println("sum:", a.sum) }

func Example() {
	seeded := actors.NewSeeded(1)
	sys, err := actors.NewSystem(actors.SystemConfig{Executor: seeded})
	if err != nil {
		fmt.Println(err)
		return
	}
	ref := actors.Spawn(sys, "adder", func() actors.Behavior[int] { return new(adder) }, actors.Options{Capacity: 2})
	fmt.Println(ref.Offer(1), ref.Offer(2), ref.Offer(3))
	seeded.Run()
	fmt.Println(sys.Close(context.Background()), sys.Actors(), ref.Offer(4))
	// Output:
	// Accepted Accepted Full
	// sum: 3
	// <nil> 0 Gone
}

func ExampleVirtualClock() {
	clock := actors.NewVirtualClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	say := func(s string) func() {
		return func() { fmt.Println(clock.Now().Format(time.TimeOnly), s) }
	}
	clock.AfterFunc(2*time.Minute, say("second"))
	clock.AfterFunc(time.Minute, say("first"))
	cancelled := clock.AfterFunc(time.Minute, say("never"))
	fmt.Println(cancelled.Stop())
	clock.Advance(time.Hour)
	fmt.Println(clock.Now().Format(time.TimeOnly))
	// Output:
	// true
	// 00:01:00 first
	// 00:02:00 second
	// 01:00:00
}
