package load

import (
	"math/rand/v2"
	"time"

	"github.com/watchmill/watchmill/sim/scenario"
)

// schedule says when each of a writer's or reader's calls is due. It depends on
// the seed alone, not on how fast the engine answers.
type schedule struct {
	shape scenario.Shape
	// gap is the mean time between two calls, or two bursts.
	gap   float64
	burst int
	rand  *rand.Rand
	next  float64 // in nanoseconds after the start
	left  int     // calls left of the burst
}

// newSchedule spreads rate calls per second. The first is due after part of a
// gap, so that several callers do not go in step.
func newSchedule(shape scenario.Shape, rate float64, burst int, part float64, r *rand.Rand) *schedule {
	s := &schedule{shape: shape, gap: float64(time.Second) / rate, burst: max(1, burst), rand: r}
	if shape == scenario.Bursts {
		s.gap *= float64(s.burst)
		s.left = s.burst
	}
	s.next = part * s.gap
	return s
}

// due returns when the next call is due, after the start.
func (s *schedule) due() time.Duration {
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
