package pace

import (
	"context"
	"time"

	"golang.org/x/time/rate"

	"github.com/watchmill/watchmill/sim/scenario"
)

// Consumer slows a consumer of events down.
type Consumer struct {
	limiter *rate.Limiter // nil if the rate is not limited
	every   time.Duration
	pause   time.Duration
	next    time.Time // when the next pause is due
}

// NewConsumer returns what slows a consumer down as c says, nil for one at full
// speed. The first pause is due after part, from 0 to 1, of the time between two,
// so that several consumers do not pause in step.
func NewConsumer(c scenario.Consume, part float64) *Consumer {
	if !c.Slow() {
		return nil
	}
	p := &Consumer{every: c.Every, pause: c.Pause}
	if c.Rate > 0 {
		// A tenth of a second's worth at a stride keeps the timers calm. Nothing
		// is saved up at the start.
		burst := max(1, int(c.Rate/10))
		p.limiter = rate.NewLimiter(rate.Limit(c.Rate), burst)
		p.limiter.AllowN(time.Now(), burst)
	}
	if c.Every > 0 {
		p.next = time.Now().Add(time.Duration(part * float64(c.Every)))
	}
	return p
}

// Wait waits until n more events may be taken, and returns nil, or until ctx is
// done, and returns its cause.
func (c *Consumer) Wait(ctx context.Context, n int) error {
	if c.every > 0 && time.Now().After(c.next) {
		if err := Sleep(ctx, c.pause); err != nil {
			return err
		}
		c.next = time.Now().Add(c.every)
	}
	if c.limiter == nil {
		return context.Cause(ctx)
	}
	for n > 0 {
		stride := min(n, c.limiter.Burst())
		if err := Sleep(ctx, c.limiter.ReserveN(time.Now(), stride).Delay()); err != nil {
			return err
		}
		n -= stride
	}
	return nil
}
