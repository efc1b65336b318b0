package queue

import (
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// RateLimiter determines how long an item waits before it is tried again. All methods
// must be safe for concurrent use. It never gains methods.
type RateLimiter[T comparable] interface {
	// When counts another try of item, at the time now, and returns its delay.
	When(item T, now time.Time) time.Duration
	// Forget resets the count for item, after it succeeded or was given up.
	Forget(item T)
	// NumRequeues returns how many times When was called for item since it was
	// last forgotten.
	NumRequeues(item T) int
}

// NewDefaultRateLimiter returns a limiter for most controllers. The delay of an item
// starts at 5 ms and doubles up to 1000 s, or is longer if all items together are tried
// more than 10 times a second after a burst of 100.
func NewDefaultRateLimiter[T comparable]() RateLimiter[T] {
	return MaxOf(
		NewExponentialRateLimiter[T](5*time.Millisecond, 1000*time.Second),
		NewBucketRateLimiter[T](rate.NewLimiter(10, 100)),
	)
}

// tries counts tries by item.
type tries[T comparable] struct {
	mu    sync.Mutex
	count burstMap[T, int]
}

// next counts a try and returns how many there were before.
func (t *tries[T]) next(item T) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.count.entries[item]
	t.count.put(item, before+1)
	return before
}

// Forget resets the count for item.
func (t *tries[T]) Forget(item T) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count.remove(item)
}

// NumRequeues returns how many tries of item were counted.
func (t *tries[T]) NumRequeues(item T) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.count.entries[item]
}

// exponential doubles the delay of an item with each try.
type exponential[T comparable] struct {
	tries[T]
	base, longest time.Duration
}

// NewExponentialRateLimiter returns a limiter with delays of base·2ⁿ after n tries of an item,
// and at most longest. A base of zero or less means no delay.
func NewExponentialRateLimiter[T comparable](base, longest time.Duration) RateLimiter[T] {
	return &exponential[T]{base: base, longest: longest}
}

func (l *exponential[T]) When(item T, _ time.Time) time.Duration {
	before := l.next(item)
	if l.base <= 0 {
		return 0
	}
	wait := float64(l.base) * math.Pow(2, float64(before))
	if wait >= float64(l.longest) { // even when it would not fit a Duration
		return l.longest
	}
	return time.Duration(wait)
}

// fastSlow has a short delay for the first tries of an item, then a long one.
type fastSlow[T comparable] struct {
	tries[T]
	fast, slow time.Duration
	most       int
}

// NewFastSlowRateLimiter returns a limiter with the delay fast for the first most tries of an
// item, then slow.
func NewFastSlowRateLimiter[T comparable](fast, slow time.Duration, most int) RateLimiter[T] {
	return &fastSlow[T]{fast: fast, slow: slow, most: most}
}

func (l *fastSlow[T]) When(item T, _ time.Time) time.Duration {
	if l.next(item) < l.most {
		return l.fast
	}
	return l.slow
}

// tokenBucket limits all items together. It does not count them.
type tokenBucket[T comparable] struct{ bucket *rate.Limiter }

// NewBucketRateLimiter returns a limiter of all items together, which takes a token from bucket
// for each try. The delay is infinite if the bucket never has a token. Nil means no limit. It does
// not count tries: NumRequeues returns zero.
func NewBucketRateLimiter[T comparable](bucket *rate.Limiter) RateLimiter[T] {
	if bucket == nil {
		bucket = rate.NewLimiter(rate.Inf, 0)
	}
	return tokenBucket[T]{bucket}
}

func (l tokenBucket[T]) When(_ T, now time.Time) time.Duration {
	return l.bucket.ReserveN(now, 1).DelayFrom(now)
}

func (tokenBucket[T]) Forget(T) {}

func (tokenBucket[T]) NumRequeues(T) int { return 0 }

// maxOf is several limiters at once.
type maxOf[T comparable] []RateLimiter[T]

// MaxOf returns a limiter with the longest delay of limiters. Nil ones are ignored;
// without any there is no delay.
func MaxOf[T comparable](limiters ...RateLimiter[T]) RateLimiter[T] {
	var ls maxOf[T]
	for _, l := range limiters {
		if l != nil {
			ls = append(ls, l)
		}
	}
	return ls
}

func (ls maxOf[T]) When(item T, now time.Time) time.Duration {
	var longest time.Duration
	for _, l := range ls {
		longest = max(longest, l.When(item, now))
	}
	return longest
}

func (ls maxOf[T]) Forget(item T) {
	for _, l := range ls {
		l.Forget(item)
	}
}

func (ls maxOf[T]) NumRequeues(item T) int {
	most := 0
	for _, l := range ls {
		most = max(most, l.NumRequeues(item))
	}
	return most
}

// withMaxWait is a limiter with a bound.
type withMaxWait[T comparable] struct {
	RateLimiter[T]
	longest time.Duration
}

// WithMaxWait returns limiter with delays of at most longest. A nil limiter has no
// delay.
func WithMaxWait[T comparable](limiter RateLimiter[T], longest time.Duration) RateLimiter[T] {
	return withMaxWait[T]{MaxOf(limiter), longest}
}

func (l withMaxWait[T]) When(item T, now time.Time) time.Duration {
	return min(l.RateLimiter.When(item, now), l.longest)
}
