package queue_test

import (
	"fmt"
	"time"

	"golang.org/x/time/rate"

	"github.com/watchmill/watchmill/queue"
)

// Each item is delayed by its own failures, all together by a bucket of tokens, and no item for
// longer than a second.
func ExampleMaxOf() {
	limiter := queue.WithMaxWait(queue.MaxOf[string](
		queue.NewFastSlowRateLimiter[string](100*time.Millisecond, time.Minute, 2),
		queue.NewBucketRateLimiter[string](rate.NewLimiter(10, 100)),
	), time.Second)
	now := time.Date(2026, time.November, 1, 12, 0, 0, 0, time.UTC)
	for range 3 {
		fmt.Println(limiter.When("web", now))
	}
	limiter.Forget("web")
	fmt.Println(limiter.When("web", now))
	// Output:
	// 100ms
	// 100ms
	// 1s
	// 100ms
}
