package load

import (
	"context"
	"time"

	"golang.org/x/time/rate"

	"github.com/watchmill/watchmill/sim/scenario"
)

// pace slows a consumer down. It belongs to its watcher.
type pace struct {
	limiter *rate.Limiter
	every   time.Duration
	pause   time.Duration
	next    time.Time
}

// newPace returns the pace of a slow consumer, nil for one at full speed. The
// first pause comes after a part of the usual time.
func newPace(c scenario.Consume, part float64) *pace {
	if !c.Slow() {
		return nil
	}
	p := &pace{every: c.Every, pause: c.Pause}
	if c.Rate > 0 {
		// A tenth of a second's worth at a stride keeps the timers calm.
		burst := max(1, int(c.Rate/10))
		p.limiter = rate.NewLimiter(rate.Limit(c.Rate), burst)
		p.limiter.AllowN(time.Now(), burst)
	}
	if c.Every > 0 {
		p.next = time.Now().Add(time.Duration(part * float64(c.Every)))
	}
	return p
}

// wait waits until the next event may be taken, or ctx is done.
func (p *pace) wait(ctx context.Context) error {
	if p.every > 0 && time.Now().After(p.next) {
		if err := sleep(ctx, p.pause); err != nil {
			return err
		}
		p.next = time.Now().Add(p.every)
	}
	if p.limiter == nil {
		return context.Cause(ctx)
	}
	return sleep(ctx, p.limiter.Reserve().Delay())
}
