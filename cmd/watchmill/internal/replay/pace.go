package replay

import (
	"context"
	"math"
	"time"

	"golang.org/x/time/rate"

	"github.com/watchmill/watchmill/sim/trace"
)

const (
	// slowBurst is how many events a slow consumer takes at a stride: a tenth of
	// a second's worth, so that fifty of them do not keep the timers busy.
	slowBurst = SlowRate / 10
	// maxWait is as long as anybody waits, a century: more does not fit a
	// Duration for long.
	maxWait = 100 * 365 * 24 * time.Hour
)

// newPace returns the pace of one slow consumer. It starts with nothing saved
// up.
func newPace() *rate.Limiter {
	pace := rate.NewLimiter(SlowRate, slowBurst)
	pace.AllowN(time.Now(), slowBurst)
	return pace
}

// pay waits until n events may be read, or ctx is done.
func pay(ctx context.Context, pace *rate.Limiter, n int) error {
	for n > 0 {
		stride := min(n, slowBurst)
		if err := sleep(ctx, pace.ReserveN(time.Now(), stride).Delay()); err != nil {
			return err
		}
		n -= stride
	}
	return nil
}

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
	return sleep(ctx, time.Duration(math.Round(min(early, maxWait.Seconds())*1e9)))
}

// sleep waits until d has passed, or ctx is done.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
