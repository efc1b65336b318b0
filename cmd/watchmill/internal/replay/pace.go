package replay

import (
	"context"
	"math"
	"time"

	"github.com/watchmill/watchmill/sim/pace"
	"github.com/watchmill/watchmill/sim/scenario"
	"github.com/watchmill/watchmill/sim/trace"
)

// maxWait is as long as anybody waits, a century: more does not fit a Duration
// for long.
const maxWait = 100 * 365 * 24 * time.Hour

// slow is how slow consumers take events.
var slow = scenario.Consume{Rate: SlowRate}

// schedule says when each change is due.
type schedule struct {
	// speed is how many times faster than it happened; zero means at once.
	speed         float64
	start, origin time.Time
}

// wait blocks until the change is due, or ctx is done. A change that happened
// before the one before it, as clocks would have it, is due at once.
func (s *schedule) wait(ctx context.Context, c *trace.Change) error {
	if s.speed == 0 {
		return context.Cause(ctx)
	}
	// In seconds and floating point: a Duration does not hold centuries.
	seconds := float64(c.Time.Unix()-s.origin.Unix()) + float64(c.Time.Nanosecond()-s.origin.Nanosecond())/1e9
	early := seconds/s.speed - time.Since(s.start).Seconds()
	return pace.Sleep(ctx, time.Duration(math.Round(min(early, maxWait.Seconds())*1e9)))
}
