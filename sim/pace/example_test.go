package pace_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/watchmill/watchmill/sim/pace"
	"github.com/watchmill/watchmill/sim/scenario"
)

// A hundred calls per second in bursts of four. A caller sleeps until each is due,
// and measures its latency from that time.
func ExampleSchedule() {
	s := pace.NewSchedule(scenario.Bursts, 100, 4, 0, nil)
	for range 6 {
		fmt.Println(s.Due())
	}
	// Output:
	// 0s
	// 0s
	// 0s
	// 0s
	// 40ms
	// 40ms
}

func ExampleConsumer() {
	slow := pace.NewConsumer(scenario.Consume{Rate: 100}, 0)
	start := time.Now()
	if err := slow.Wait(context.Background(), 3); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(time.Since(start) >= 20*time.Millisecond)
	// Output: true
}

func ExampleSleep() {
	ctx, stop := context.WithCancelCause(context.Background())
	stop(errors.New("enough"))
	fmt.Println(pace.Sleep(ctx, time.Hour))
	// Output: enough
}
