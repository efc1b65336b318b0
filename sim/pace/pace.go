package pace

import (
	"context"
	"math"
	"math/rand/v2"
	"time"

	"golang.org/x/time/rate"

	"github.com/watchmill/watchmill/sim/scenario"
)

// Schedule says when each of somebody's calls is due. It depends on the seed
// alone, not on how fast the calls are answered, so that latency which counts
// from there leaves nothing out.
type Schedule struct {
	shape scenario.Shape
	// gap is the mean time between two calls, or two bursts.
	gap   float64
	burst int
	rand  *rand.Rand
	next  float64 // in nanoseconds after the start
	left  int     // calls left of the burst
}

// NewSchedule spreads rate calls per second, above 0. The first is due after
// part, from 0 to 1, of the mean time between two (of two bursts, for
// [scenario.Bursts]), so that several callers need not go in step. Burst is how
// many come at once for [scenario.Bursts], and chance decides for
// [scenario.Poisson]; other shapes need neither.
func NewSchedule(shape scenario.Shape, rate float64, burst int, part float64, chance *rand.Rand) *Schedule {
	s := &Schedule{shape: shape, gap: float64(time.Second) / rate, burst: max(1, burst), rand: chance}
	if shape == scenario.Bursts {
		s.gap *= float64(s.burst)
		s.left = s.burst
	}
	s.next = part * s.gap
	return s
}

// Left returns how many calls have yet to be due before end: for
// [scenario.Poisson] on average, for other shapes exactly.
func (s *Schedule) Left(end time.Duration) uint64 {
	rounds := math.Ceil((float64(end) - s.next) / s.gap)
	switch {
	case rounds <= 0:
		return 0
	case s.shape == scenario.Bursts:
		return uint64(rounds-1)*uint64(s.burst) + uint64(s.left)
	}
	return uint64(rounds)
}

// Due returns when the next call is due, after the start. It never goes back.
func (s *Schedule) Due() time.Duration {
	due := time.Duration(s.next)
	switch s.shape {
	case scenario.Poisson:
		s.next += s.gap * s.rand.ExpFloat64()
	case scenario.Bursts:
		if s.left--; s.left == 0 {
			s.left = s.burst
			s.next += s.gap
		}
	default:
		s.next += s.gap
	}
	return due
}

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

// Sleep waits until d has passed, and returns nil, or until ctx is done, and
// returns its cause. It does not wait for zero or less: then it returns the cause
// if ctx is done, and nil if it is not.
func Sleep(ctx context.Context, d time.Duration) error {
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
