package pace

import (
	"math"
	"math/rand/v2"
	"time"

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
