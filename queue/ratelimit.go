package queue

import (
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// RateLimiter says how long an item has to wait before it is tried again. All
// methods must be safe for concurrent use.
type RateLimiter[T comparable] interface {
	// When counts one more try of item, at the time now, and returns how long to
	// wait with it.
	When(item T, now time.Time) time.Duration
	// Forget ends the counting for item, as it succeeded or was given up.
	Forget(item T)
	// NumRequeues returns how many times When was called for item since it was
	// last forgotten.
	NumRequeues(item T) int
}

// NewDefaultRateLimiter returns what suits most controllers: each item waits 5 ms
// and doubling, up to 1000 s, and all together are tried 10 times a second after
// a burst of 100, whichever is longer.
func NewDefaultRateLimiter[T comparable]() RateLimiter[T] {
	return MaxOf(
		NewExponential[T](5*time.Millisecond, 1000*time.Second),
		NewBucket[T](rate.NewLimiter(10, 100)),
	)
}

// tries counts tries by item.
type tries[T comparable] struct {
	mu    sync.Mutex
	count map[T]int
}

// next counts a try and returns how many there were before.
func (t *tries[T]) next(item T) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.count == nil {
		t.count = make(map[T]int)
	}
	before := t.count[item]
	t.count[item] = before + 1
	return before
}

// Forget ends the counting for item.
func (t *tries[T]) Forget(item T) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.count, item)
}

// NumRequeues returns how many tries of item were counted.
func (t *tries[T]) NumRequeues(item T) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.count[item]
}

// Exponential makes an item wait twice as long every time.
type Exponential[T comparable] struct {
	tries[T]
	base, longest time.Duration
}

// NewExponential returns a limiter that makes an item wait base·2ⁿ after n
// tries, and never more than longest. A base of zero or less means no wait.
func NewExponential[T comparable](base, longest time.Duration) *Exponential[T] {
	return &Exponential[T]{base: base, longest: longest}
}

// When implements [RateLimiter].
func (l *Exponential[T]) When(item T, _ time.Time) time.Duration {
	before := l.next(item)
	if l.base <= 0 {
		return 0
	}
	wait := float64(l.base) * math.Pow(2, float64(before))
	if wait >= float64(l.longest) { // also when it would not fit a Duration
		return l.longest
	}
	return time.Duration(wait)
}

// FastSlow makes an item wait shortly a few times, then long.
type FastSlow[T comparable] struct {
	tries[T]
	fast, slow time.Duration
	most       int
}

// NewFastSlow returns a limiter that makes an item wait fast for its first most
// tries, then slow.
func NewFastSlow[T comparable](fast, slow time.Duration, most int) *FastSlow[T] {
	return &FastSlow[T]{fast: fast, slow: slow, most: most}
}

// When implements [RateLimiter].
func (l *FastSlow[T]) When(item T, _ time.Time) time.Duration {
	if l.next(item) < l.most {
		return l.fast
	}
	return l.slow
}

// Bucket limits all items together. It does not count them.
type Bucket[T comparable] struct{ bucket *rate.Limiter }

// NewBucket returns a limiter that takes a token from bucket for each try. Nil
// means no limit.
func NewBucket[T comparable](bucket *rate.Limiter) *Bucket[T] {
	if bucket == nil {
		bucket = rate.NewLimiter(rate.Inf, 0)
	}
	return &Bucket[T]{bucket}
}

// When implements [RateLimiter]. A bucket that never has a token makes items
// wait for ever.
func (l *Bucket[T]) When(_ T, now time.Time) time.Duration {
	return l.bucket.ReserveN(now, 1).DelayFrom(now)
}

// Forget does nothing.
func (l *Bucket[T]) Forget(T) {}

// NumRequeues returns zero.
func (l *Bucket[T]) NumRequeues(T) int { return 0 }

// maxOf is several limiters at once.
type maxOf[T comparable] []RateLimiter[T]

// MaxOf returns a limiter that asks all of limiters and makes an item wait for
// the longest. Those that are nil do not count; without any there is no wait.
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

// WithMaxWait returns limiter with waits of at most longest. A nil limiter makes
// no item wait.
func WithMaxWait[T comparable](limiter RateLimiter[T], longest time.Duration) RateLimiter[T] {
	return withMaxWait[T]{MaxOf(limiter), longest}
}

func (l withMaxWait[T]) When(item T, now time.Time) time.Duration {
	return min(l.RateLimiter.When(item, now), l.longest)
}
