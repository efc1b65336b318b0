package pace

import (
	"context"
	"math"
	"math/rand/v2"
	"time"

	"golang.org/x/time/rate"

	"github.com/watchmill/watchmill/sim/scenario"
)

// Schedule computes the times at which a caller's calls are due. They do not depend on
// how fast the calls return, so latency that is measured from them includes the time that
// a call waited for the one before. Make one with [NewSchedule].
type Schedule struct {
	shape scenario.Shape
	// gap is the mean time between two calls or bursts, in nanoseconds.
	gap   float64
	burst int
	rand  *rand.Rand
	next  float64 // when the next call is due, in nanoseconds after the start
	left  int     // calls left in the burst
}

// NewSchedule returns the schedule of rate calls per second, which is above 0. The
// first call is due after a part, from 0 to 1, of the mean time between two calls or
// bursts; different parts keep several callers from calling in step. Burst is the
// number of calls in a burst of [scenario.Bursts], and chance draws the intervals of
// [scenario.Poisson]; other shapes use neither.
func NewSchedule(shape scenario.Shape, rate float64, burst int, part float64, chance *rand.Rand) *Schedule {
	s := &Schedule{shape: shape, gap: float64(time.Second) / rate, burst: max(1, burst), rand: chance}
	if shape == scenario.Bursts {
		s.gap *= float64(s.burst)
		s.left = s.burst
	}
	s.gap = min(s.gap, never) // finite, even for the lowest rates
	s.next = part * s.gap
	return s
}

// never is the first number of nanoseconds that no Duration can represent.
const never float64 = math.MaxInt64

// Left returns the number of calls that are still due before end: the mean number for
// [scenario.Poisson], the exact number for other shapes.
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

// Due returns when the next call is due, after the start. Results never decrease. A call that
// would be due after the longest Duration, in centuries, is due at that.
func (s *Schedule) Due() time.Duration {
	due := time.Duration(math.MaxInt64)
	if s.next < never {
		due = time.Duration(s.next)
	}
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

// Consumer limits the speed of a consumer of events.
type Consumer struct {
	limiter *rate.Limiter // nil without a rate
	every   time.Duration
	pause   time.Duration
	next    time.Time // when the next pause is due
}

// NewConsumer returns the Consumer that c describes, nil for full speed. The first
// pause is due after a part, from 0 to 1, of the time between two pauses; different
// parts keep several consumers from pausing in step.
func NewConsumer(c scenario.Consume, part float64) *Consumer {
	if !c.Slow() {
		return nil
	}
	p := &Consumer{every: c.Every, pause: c.Pause}
	if c.Rate > 0 {
		// Sleeping once for the events of 100 ms needs few timers. The limiter
		// starts empty, so that there is no burst at the start.
		burst := max(1, int(c.Rate/10))
		p.limiter = rate.NewLimiter(rate.Limit(c.Rate), burst)
		p.limiter.AllowN(time.Now(), burst)
	}
	if c.Every > 0 {
		p.next = time.Now().Add(time.Duration(part * float64(c.Every)))
	}
	return p
}

// Wait waits until n more events may be taken and returns nil. It returns the cause
// of ctx if that is done first.
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

// Sleep waits for d and returns nil. It returns the cause of ctx if that is done
// first, or already done when d is zero or less.
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
