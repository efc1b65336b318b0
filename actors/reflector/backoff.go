package reflector

import (
	"cmp"
	"math"
	"time"
)

// Defaults of [Backoff]: those of Kubernetes' reflectors, so that a server
// sized for their reconnects can handle these.
const (
	DefaultInitial      = 800 * time.Millisecond
	DefaultMax          = 30 * time.Second
	DefaultFactor       = 2.0
	DefaultJitter       = 1.0
	DefaultHealthyAfter = 2 * time.Minute
)

// NoJitter as [Backoff].Jitter makes every delay exact. All Reflectors that lost
// the same source then reconnect at the same moment.
const NoJitter = -1

// Backoff spaces all of a Reflector's attempts to reconnect to its source. Zero
// fields mean the defaults.
type Backoff struct {
	// Initial is the delay after the first failure. Not negative; default
	// [DefaultInitial].
	Initial time.Duration
	// Max bounds the delay before jitter is added. At least Initial; default
	// [DefaultMax], or Initial if that is larger.
	Max time.Duration
	// Factor multiplies the delay after each attempt. At least 1; default
	// [DefaultFactor].
	Factor float64
	// Jitter is the largest random part, as a share of the delay: with 1, a
	// delay d is anything in [d, 2d). Between 0 and 10, or [NoJitter]; default
	// [DefaultJitter].
	Jitter float64
	// HealthyAfter is how long one watch must have stayed open before the delay
	// starts over at Initial. Nothing else resets it: neither a successful
	// list, nor a watch that opens or delivers, nor the passing of time.
	// Not negative; default [DefaultHealthyAfter].
	HealthyAfter time.Duration
}

func (b Backoff) withDefaults() Backoff {
	b.Initial = cmp.Or(b.Initial, DefaultInitial)
	b.Max = cmp.Or(b.Max, max(DefaultMax, b.Initial))
	b.Factor = cmp.Or(b.Factor, DefaultFactor)
	b.Jitter = cmp.Or(b.Jitter, DefaultJitter)
	b.HealthyAfter = cmp.Or(b.HealthyAfter, DefaultHealthyAfter)
	return b
}

// delay returns how long to wait after attempt (from 0) has failed. random is
// in [0, 1).
func (b Backoff) delay(attempt int, random float64) time.Duration {
	d := min(float64(b.Initial)*math.Pow(b.Factor, float64(attempt)), float64(b.Max))
	if b.Jitter > 0 {
		d += float64(d * b.Jitter * random) // the conversion prevents a fused multiply-add, which rounds differently
	}
	if d >= math.MaxInt64 { // float64(MaxInt64) rounds up to a value that overflows int64
		return math.MaxInt64
	}
	return time.Duration(d)
}
