package queue_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/clock/clocktest"
	"github.com/watchmill/watchmill/queue"
	"github.com/watchmill/watchmill/usercode"
)

func newDelaying(t require.TestingT, drain queue.DrainPolicy) *queue.WorkQueue[string] {
	return newWork(t, queue.WorkQueueConfig[string]{Clock: clock.Real(), Drain: drain})
}

// pass waits for d and returns what was added meanwhile.
func pass(t require.TestingT, q *queue.WorkQueue[string], d time.Duration) []string {
	time.Sleep(d)
	synctest.Wait()
	return do(t, q)
}

func TestAddAfter_QueuesAtItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newDelaying(t, queue.DrainNow)
		require.NoError(t, q.AddAfter("foo", 50*time.Millisecond))
		require.Empty(t, pass(t, q, 49*time.Millisecond))
		require.Equal(t, []string{"foo"}, pass(t, q, time.Millisecond))
		require.Empty(t, pass(t, q, 10*time.Second))
		require.NoError(t, q.AddAfter("foo", 0))
		require.NoError(t, q.AddAfter("bar", math.MinInt64))
		require.Equal(t, []string{"foo", "bar"}, do(t, q), "at once")
	})
}

func TestAddAfter_EarliestTimeCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newDelaying(t, queue.DrainNow)
		require.NoError(t, q.AddAfter("foo", 50*time.Millisecond))
		require.NoError(t, q.AddAfter("foo", 70*time.Millisecond))
		require.Equal(t, []string{"foo"}, pass(t, q, 50*time.Millisecond))
		require.Empty(t, pass(t, q, time.Second), "once")
		require.NoError(t, q.AddAfter("foo", 50*time.Millisecond))
		require.NoError(t, q.AddAfter("foo", 30*time.Millisecond))
		require.Equal(t, []string{"foo"}, pass(t, q, 30*time.Millisecond))
		require.Empty(t, pass(t, q, time.Second))
	})
}

func TestAddAfter_GoesOnWhenTheItemIsAddedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newDelaying(t, queue.DrainNow)
		require.NoError(t, q.AddAfter("foo", time.Second))
		require.NoError(t, q.AddAfter("foo", 0))
		require.Equal(t, []string{"foo"}, do(t, q))
		require.Equal(t, []string{"foo"}, pass(t, q, time.Second))
	})
}

func TestAddAfter_TwoFireEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newDelaying(t, queue.DrainNow)
		require.NoError(t, q.AddAfter("second", time.Second))
		require.NoError(t, q.AddAfter("first", 50*time.Millisecond))
		require.NoError(t, q.AddAfter("third", 2*time.Second))
		require.Equal(t, []string{"first"}, pass(t, q, 60*time.Millisecond))
		require.NoError(t, q.AddAfter("third", time.Second))
		require.Equal(t, []string{"second"}, pass(t, q, 950*time.Millisecond))
		require.Equal(t, []string{"third"}, pass(t, q, 50*time.Millisecond))
	})
}

func TestAddAfter_OrderOfTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newDelaying(t, queue.DrainNow)
		require.NoError(t, q.AddAfter("foo", time.Second))
		require.NoError(t, q.AddAfter("bar", 500*time.Millisecond))
		require.NoError(t, q.AddAfter("baz", 700*time.Millisecond))
		require.NoError(t, q.AddAfter("too", 700*time.Millisecond))
		require.Equal(t, []string{"bar", "baz", "too", "foo"}, pass(t, q, 2*time.Second))
	})
}

// Timers go by the time that passes, so a clock that is set forward makes a delay due before its
// timer. The next delay does not wait for that one.
func TestAddAfter_OfAClockThatIsSetForward(t *testing.T) {
	for name, jump := range map[string]time.Duration{"to the time": time.Hour, "beyond it": 2 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			virtual := clock.NewVirtual(epoch)
			q := newWork(t, queue.WorkQueueConfig[string]{Clock: virtual})
			require.NoError(t, q.AddAfter("a", time.Hour))
			virtual.Jump(jump)
			require.NoError(t, q.AddAfter("b", time.Second))
			require.Equal(t, []string{"a"}, do(t, q), "it is due")
			virtual.Advance(time.Second)
			require.Equal(t, []string{"b"}, do(t, q))
			require.Zero(t, virtual.Pending())
		})
	}
}

func TestAddAfter_DoesNotGiveAnItemToASecondWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newDelaying(t, queue.DrainNow)
		require.NoError(t, q.Add("foo"))
		get(t, q)
		require.NoError(t, q.AddAfter("foo", time.Second))
		require.Empty(t, pass(t, q, time.Minute))
		q.Done("foo")
		require.Equal(t, []string{"foo"}, do(t, q))
	})
}

// Upstream drops what is delayed without a word.
func TestDrain_DelayedItemsByPolicy(t *testing.T) {
	start := func(t *testing.T, policy queue.DrainPolicy) (*queue.WorkQueue[string], chan error) {
		q := newDelaying(t, policy)
		require.NoError(t, q.AddAfter("later", time.Hour))
		require.NoError(t, q.AddAfter("sooner", time.Minute))
		drained := make(chan error, 1)
		go func() { drained <- q.ShutDownWithDrain(t.Context()) }()
		synctest.Wait()
		return q, drained
	}
	synctest.Test(t, func(t *testing.T) {
		q, drained := start(t, queue.DrainNow)
		require.Empty(t, drained)
		require.Equal(t, []string{"sooner", "later"}, do(t, q))
		require.NoError(t, <-drained)
	})
	synctest.Test(t, func(t *testing.T) {
		q, drained := start(t, queue.DrainInTime)
		began := time.Now()
		ended := make(chan error, 1)
		go func() { // a worker that waits meanwhile goes on waiting
			for range 2 {
				q.Done(get(t, q))
			}
			_, err := q.Get(context.Background())
			ended <- err
		}()
		require.NoError(t, <-drained)
		require.Equal(t, time.Hour, time.Since(began))
		require.ErrorIs(t, <-ended, queue.ErrShutDown)
	})
	synctest.Test(t, func(t *testing.T) {
		q, drained := start(t, queue.DrainWithout)
		require.NoError(t, <-drained)
		require.Empty(t, pass(t, q, 2*time.Hour))
	})
	synctest.Test(t, func(t *testing.T) {
		q, drained := start(t, queue.DrainInTime)
		require.Equal(t, []string{"sooner", "later"}, q.ShutDown(), "dropped and returned")
		require.NoError(t, <-drained, "nothing was left to do")
		require.Empty(t, pass(t, q, 2*time.Hour))
	})
}

func TestTimer_OneAndNoneAfterShutDown(t *testing.T) {
	virtual := clock.NewVirtual(epoch)
	q := newWork(t, queue.WorkQueueConfig[int]{Clock: virtual})
	for i := range 100 {
		require.NoError(t, q.AddAfter(i, time.Duration(1+i*37%100)*time.Second))
		require.Equal(t, 1, virtual.Pending())
	}
	virtual.Advance(50 * time.Second)
	require.Equal(t, 1, virtual.Pending())
	require.Equal(t, 50, q.Len())
	require.Len(t, q.ShutDown(), 50)
	require.Zero(t, virtual.Pending())
}

// recordingClock keeps the functions of all timers.
type recordingClock struct {
	*clock.Virtual
	calls []func()
}

func (c *recordingClock) AfterFunc(d time.Duration, f func()) clock.Timer {
	c.calls = append(c.calls, f)
	return c.Virtual.AfterFunc(d, f)
}

// A timer may have begun when it is stopped. Its call then finds another timer
// set, which it must neither forget nor double.
func TestTimer_LateCallAfterItWasStopped(t *testing.T) {
	virtual := &recordingClock{Virtual: clock.NewVirtual(epoch)}
	q := newWork(t, queue.WorkQueueConfig[string]{Clock: virtual})
	require.NoError(t, q.AddAfter("foo", time.Minute))
	late := virtual.calls[0]
	require.NoError(t, q.AddAfter("bar", time.Second))
	late()
	require.Equal(t, 1, virtual.Pending())
	require.Zero(t, q.Len())
	virtual.Advance(time.Hour)
	require.Equal(t, []string{"bar", "foo"}, do(t, q))
	late()
	require.Zero(t, virtual.Pending())
	require.Zero(t, q.Len())
}

var epoch = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// waits asks a limiter n times about item.
func waits(l queue.RateLimiter[string], item string, n int) (waits []time.Duration) {
	for range n {
		waits = append(waits, l.When(item, epoch))
	}
	return waits
}

func TestExponential_DoublesUpToItsMost(t *testing.T) {
	l := queue.NewExponentialRateLimiter[string](time.Millisecond, 10*time.Millisecond)
	require.Equal(t, []time.Duration{1e6, 2e6, 4e6, 8e6, 10e6, 10e6}, waits(l, "one", 6))
	require.Equal(t, []time.Duration{1e6, 2e6}, waits(l, "two", 2), "each for itself")
	require.Equal(t, 6, l.NumRequeues("one"))
	l.Forget("one")
	require.Zero(t, l.NumRequeues("one"))
	require.Equal(t, []time.Duration{1e6}, waits(l, "one", 1))
	require.Equal(t, []time.Duration{0, 0}, waits(queue.NewExponentialRateLimiter[string](0, time.Second), "one", 2))
}

func TestExponential_DoesNotOverflow(t *testing.T) {
	for _, longest := range []time.Duration{1000 * time.Second, math.MaxInt64} {
		l := queue.NewExponentialRateLimiter[string](time.Millisecond, longest)
		last := time.Duration(0)
		for _, wait := range waits(l, "one", 2000) {
			require.GreaterOrEqual(t, wait, last)
			last = wait
		}
		require.Equal(t, longest, last)
	}
	zero := queue.NewExponentialRateLimiter[string](0, time.Second)
	require.Zero(t, waits(zero, "one", 2000)[1999])
}

func TestFastSlow_IsSlowAfterItsFastAttempts(t *testing.T) {
	l := queue.NewFastSlowRateLimiter[string](5*time.Millisecond, 10*time.Second, 3)
	require.Equal(t, []time.Duration{5e6, 5e6, 5e6, 10e9, 10e9}, waits(l, "one", 5))
	require.Equal(t, 5, l.NumRequeues("one"))
	l.Forget("one")
	require.Equal(t, []time.Duration{5e6}, waits(l, "one", 1))
}

func TestBucket_GivesOutItsBurstAndThenItsRate(t *testing.T) {
	l := queue.NewBucketRateLimiter[string](rate.NewLimiter(10, 2))
	require.Equal(t, []time.Duration{0, 0, 1e8, 2e8}, waits(l, "one", 4))
	require.Equal(t, 2*time.Second/10+1e8, l.When("two", epoch), "all together")
	require.Zero(t, l.When("one", epoch.Add(time.Hour)))
	l.Forget("one")
	require.Zero(t, l.NumRequeues("one"))
	require.Zero(t, queue.NewBucketRateLimiter[string](nil).When("one", epoch))
}

func TestMaxOf_TakesTheLongestDelay(t *testing.T) {
	l := queue.MaxOf(
		queue.NewFastSlowRateLimiter[string](5*time.Millisecond, 3*time.Second, 3),
		nil,
		queue.NewExponentialRateLimiter[string](time.Millisecond, time.Second),
	)
	require.Equal(t, []time.Duration{5e6, 5e6, 5e6, 3e9, 3e9}, waits(l, "one", 5))
	require.Equal(t, 5, l.NumRequeues("one"))
	l.Forget("one")
	require.Zero(t, l.NumRequeues("one"))
	require.Zero(t, queue.MaxOf[string]().When("one", epoch))
}

func TestWithMaxWait_BoundsTheDelay(t *testing.T) {
	l := queue.WithMaxWait[string](queue.NewExponentialRateLimiter[string](time.Second, time.Hour), 3*time.Second)
	require.Equal(t, []time.Duration{1e9, 2e9, 3e9, 3e9}, waits(l, "one", 4))
	require.Equal(t, 4, l.NumRequeues("one"))
	require.Zero(t, queue.WithMaxWait[string](nil, time.Second).When("one", epoch))
}

func TestAddRateLimited_WaitsAsItsLimiterSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newWork(t, queue.WorkQueueConfig[string]{
			Clock: clock.Real(), Limiter: queue.NewExponentialRateLimiter[string](time.Millisecond, time.Second),
		})
		require.NoError(t, q.AddRateLimited("one"))
		require.Equal(t, []string{"one"}, pass(t, q, time.Millisecond))
		require.NoError(t, q.AddRateLimited("one"))
		require.Empty(t, pass(t, q, time.Millisecond))
		require.Equal(t, []string{"one"}, pass(t, q, time.Millisecond))
		require.Equal(t, 2, q.NumRequeues("one"))
		require.NoError(t, q.AddRateLimited("two"))
		require.Equal(t, []string{"two"}, pass(t, q, time.Millisecond))
		q.Forget("one")
		require.Zero(t, q.NumRequeues("one"))
		require.NoError(t, q.AddRateLimited("one"))
		require.Equal(t, []string{"one"}, pass(t, q, time.Millisecond))
	})
}

type panickyLimiter struct{ queue.RateLimiter[string] }

func (panickyLimiter) When(string, time.Time) time.Duration { panic("when") }

func TestAddRateLimited_LimiterPanicIsReturned(t *testing.T) {
	q := newWork(t, queue.WorkQueueConfig[string]{Clock: clock.Real(), Limiter: panickyLimiter{}})
	var panicked *usercode.PanicError
	require.ErrorAs(t, q.AddRateLimited("one"), &panicked)
	require.NoError(t, q.Add("one"))
}

// At whatever point the clock fails to say the time, every item is processed once.
func TestWorkQueue_LosesNoItemWhenTheClockFails(t *testing.T) {
	for point := range 6 {
		virtual := clock.NewVirtual(time.Unix(0, 0))
		wire := &clocktest.Failing{Clock: virtual}
		q := newWork(t, queue.WorkQueueConfig[string]{Clock: wire})
		var got []string
		for step, call := range []func(){
			func() { require.NoError(t, q.Add("a")) },
			func() { require.NoError(t, q.AddAfter("b", time.Second)) },
			func() { virtual.Advance(time.Second) },
			func() { got = append(got, do(t, q)...) },
			func() { require.NoError(t, q.Add("a")) },
			func() { got = append(got, do(t, q)...) },
		} {
			if step == point {
				wire.Fail(clocktest.Now, 0, 1)
			}
			call()
			require.Zero(t, wire.Left(clocktest.Now))
		}
		virtual.Advance(time.Second)
		got = append(got, do(t, q)...)
		require.ElementsMatch(t, []string{"a", "b", "a"}, got, "the clock fails at %d", point)
	}
}

func TestAddAfter_TimerThatCouldNotBeSetIsSetByTheNextCall(t *testing.T) {
	for name, call := range map[string]func(*queue.WorkQueue[string]) error{
		"Add":      func(q *queue.WorkQueue[string]) error { return q.Add("other") },
		"AddAfter": func(q *queue.WorkQueue[string]) error { return q.AddAfter("other", 0) },
		"Done": func(q *queue.WorkQueue[string]) error {
			q.Done("busy")
			return nil
		},
		"ShutDownWithDrain": func(q *queue.WorkQueue[string]) error {
			impatient, cancel := context.WithCancel(t.Context())
			cancel()
			require.ErrorIs(t, q.ShutDownWithDrain(impatient), context.Canceled)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual := clock.NewVirtual(time.Unix(0, 0))
			wire := &clocktest.Failing{Clock: virtual}
			q := newWork(t, queue.WorkQueueConfig[string]{Clock: wire, Drain: queue.DrainInTime})
			require.NoError(t, q.Add("busy"))
			_, ok := q.TryGet()
			require.True(t, ok)
			wire.Fail(clocktest.AfterFunc, 0, 1)
			require.ErrorIs(t, q.AddAfter("a", time.Minute), usercode.ErrPanic)
			virtual.Advance(2 * time.Minute)
			require.Empty(t, do(t, q))
			require.NoError(t, call(q))
			virtual.Advance(time.Nanosecond)
			require.Contains(t, do(t, q), "a")
		})
	}
}

// A timer that the clock does not stop finds nothing due, and the one after it is set all the same.
func TestAddAfter_ReplacesATimerThatCannotBeStopped(t *testing.T) {
	virtual := clock.NewVirtual(epoch)
	wire := &clocktest.Failing{Clock: virtual}
	q := newWork(t, queue.WorkQueueConfig[string]{Clock: wire})
	require.NoError(t, q.AddAfter("late", time.Minute))
	wire.Fail(clocktest.Stop, 0, 1)
	require.NotPanics(t, func() { require.ErrorIs(t, q.AddAfter("soon", time.Second), usercode.ErrPanic) })
	virtual.Advance(time.Second)
	require.Equal(t, []string{"soon"}, do(t, q))
	virtual.Advance(time.Minute)
	require.Equal(t, []string{"late"}, do(t, q))
	require.Zero(t, virtual.Pending())
}

// Workers that wait learn of the end though the clock fails to stop the timer, whether by a panic or by ending
// the goroutine.
func TestShutDown_EndsWorkersThoughTheTimerCannotBeStopped(t *testing.T) {
	for name, end := range map[string]func(*queue.WorkQueue[string]){
		"ShutDown":          func(q *queue.WorkQueue[string]) { q.ShutDown() },
		"ShutDownWithDrain": func(q *queue.WorkQueue[string]) { _ = q.ShutDownWithDrain(context.Background()) },
	} {
		for how, exits := range map[string]bool{"panic": false, "Goexit": true} {
			t.Run(name+" "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					wire := &clocktest.Failing{Clock: clock.Real(), Exits: exits}
					wire.Fail(clocktest.Stop, 0, 1)
					q := newWork(t, queue.WorkQueueConfig[string]{Clock: wire, Drain: queue.DrainWithout})
					require.NoError(t, q.AddAfter("delayed", time.Minute))
					ended := make(chan error, 1)
					go func() {
						_, err := q.Get(context.Background())
						ended <- err
					}()
					synctest.Wait()
					go func() {
						defer func() { _ = recover() }() // the test is of the worker
						end(q)
					}()
					require.ErrorIs(t, <-ended, queue.ErrShutDown)
					time.Sleep(time.Minute) // the timer goes on
				})
			})
		}
	}
}

// The times that are told of are not negative, though a virtual clock that is set back has no
// monotonic readings.
func TestWorkQueue_TimesOfAClockThatIsSetBack(t *testing.T) {
	virtual, r := clock.NewVirtual(epoch), new(recorder)
	q := newWork(t, queue.WorkQueueConfig[string]{Clock: virtual, Metrics: r})
	require.NoError(t, q.Add("a"))
	virtual.Jump(-time.Hour)
	require.Equal(t, "a", get(t, q))
	virtual.Jump(-time.Hour)
	s := q.Stats()
	require.Zero(t, s.Unfinished)
	require.Zero(t, s.Longest)
	q.Done("a")
	require.Equal(t, []string{"added 1", "started 0 0s", "finished 0s"}, r.calls)
}
