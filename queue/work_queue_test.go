package queue_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/queue"
	"github.com/watchmill/watchmill/usercode"
)

func newWork[T comparable](t require.TestingT, cfg queue.WorkQueueConfig[T]) *queue.WorkQueue[T] {
	q, err := queue.NewWorkQueue(cfg)
	require.NoError(t, err)
	return q
}

func get[T comparable](t require.TestingT, q *queue.WorkQueue[T]) T {
	item, err := q.Get(context.Background())
	require.NoError(t, err)
	return item
}

// do gets and finishes all that is queued.
func do[T comparable](t require.TestingT, q *queue.WorkQueue[T]) (done []T) {
	for q.Len() > 0 {
		item := get(t, q)
		q.Done(item)
		done = append(done, item)
	}
	return done
}

// checkManyWorkers has 50 producers and 10 workers, and checks that each item is
// done and none by two workers at once.
func checkManyWorkers(t *testing.T, shutDown func(*queue.WorkQueue[int])) {
	q := newWork(t, queue.WorkQueueConfig[int]{})
	var producers, workers sync.WaitGroup
	var mu sync.Mutex
	busy, times := map[int]bool{}, map[int]int{}
	for range 10 {
		workers.Go(func() {
			for {
				item, err := q.Get(context.Background())
				if err != nil {
					return
				}
				mu.Lock()
				if busy[item] {
					t.Errorf("two workers have %d", item)
				}
				busy[item] = true
				times[item]++
				again := times[item] == 1
				mu.Unlock()
				if again {
					_ = q.Add(item) // while it is being processed; refused if the queue is shut down
				}
				mu.Lock()
				busy[item] = false
				mu.Unlock()
				q.Done(item)
			}
		})
	}
	for i := range 50 {
		producers.Go(func() {
			if err := q.Add(i); err != nil {
				t.Error(err)
			}
		})
	}
	producers.Wait()
	shutDown(q)
	require.ErrorIs(t, q.Add(99), queue.ErrShutDown)
	workers.Wait()
	require.Len(t, times, 50)
	require.Zero(t, q.Len())
}

func TestWorkQueue_ManyWorkersDrainAfterShutDown(t *testing.T) {
	checkManyWorkers(t, func(q *queue.WorkQueue[int]) { q.ShutDown() })
}

func TestWorkQueue_ManyWorkersDrainAfterShutDownWithDrain(t *testing.T) {
	checkManyWorkers(t, func(q *queue.WorkQueue[int]) { require.NoError(t, q.ShutDownWithDrain(t.Context())) })
}

func TestWorkQueue_LenAndCollapse(t *testing.T) {
	q := newWork(t, queue.WorkQueueConfig[string]{})
	for _, item := range []string{"foo", "foo", "bar", "foo"} {
		require.NoError(t, q.Add(item))
	}
	require.Equal(t, 2, q.Len())
	require.Equal(t, []string{"foo", "bar"}, do(t, q), "once each, at the place of the first")
}

func TestWorkQueue_ReinsertWhileProcessing(t *testing.T) {
	q := newWork(t, queue.WorkQueueConfig[string]{})
	require.NoError(t, q.Add("foo"))
	require.Equal(t, "foo", get(t, q))
	require.NoError(t, q.Add("foo"))
	require.NoError(t, q.Add("foo"))
	require.Zero(t, q.Len(), "a worker has it, so no other can")
	q.Done("foo")
	require.Equal(t, []string{"foo"}, do(t, q), "once more")
	q.Done("foo")
	q.Done("never added")
	require.Zero(t, q.Len())
}

func TestDrain_WaitsForRunningAndQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newWork(t, queue.WorkQueueConfig[string]{})
		require.NoError(t, q.Add("foo"))
		require.NoError(t, q.Add("bar"))
		require.NoError(t, q.Add("baz"))
		foo := get(t, q)
		require.NoError(t, q.Add(foo), "it is dirty")

		drained := make(chan error, 1)
		go func() { drained <- q.ShutDownWithDrain(t.Context()) }()
		synctest.Wait()
		q.Done(foo)
		for _, want := range []string{"bar", "baz", "foo"} {
			synctest.Wait()
			// Upstream returned here, as nothing was being processed (#141079).
			require.Empty(t, drained, "before %s", want)
			require.Equal(t, want, get(t, q))
			synctest.Wait()
			require.Empty(t, drained, "while %s runs", want)
			q.Done(want)
		}
		require.NoError(t, <-drained)
		_, err := q.Get(t.Context())
		require.ErrorIs(t, err, queue.ErrShutDown)
		require.True(t, q.ShuttingDown())
		require.NoError(t, q.ShutDownWithDrain(t.Context()), "again: nothing to wait for")
	})
}

func TestShutDown_DoesNotWait(t *testing.T) {
	q := newWork(t, queue.WorkQueueConfig[string]{})
	require.NoError(t, q.Add("foo"))
	require.NoError(t, q.Add("bar"))
	get(t, q)
	q.ShutDown()
	require.Equal(t, "bar", get(t, q), "what is queued can be got")
	_, err := q.Get(t.Context())
	require.ErrorIs(t, err, queue.ErrShutDown)
}

func TestShutDown_EndsDraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newWork(t, queue.WorkQueueConfig[string]{})
		require.NoError(t, q.Add("foo"))
		get(t, q)
		drained := make(chan error, 1)
		go func() { drained <- q.ShutDownWithDrain(t.Context()) }()
		synctest.Wait()
		q.ShutDown()
		require.ErrorIs(t, <-drained, queue.ErrShutDown)
	})
}

func TestDrain_EndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newWork(t, queue.WorkQueueConfig[string]{})
		require.NoError(t, q.Add("foo"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, q.ShutDownWithDrain(ctx), context.DeadlineExceeded)
		require.Equal(t, []string{"foo"}, do(t, q))
		require.NoError(t, q.ShutDownWithDrain(t.Context()))
	})
}

func TestWorkQueue_PoppedItemIsCollectable(t *testing.T) {
	q := newWork(t, queue.WorkQueueConfig[*thing]{})
	item := &thing{"a", "1"}
	weakly := weak.Make(item)
	require.NoError(t, q.Add(item))
	require.NoError(t, q.Add(&thing{"b", "1"}), "so that the queue does not become empty")
	q.Done(get(t, q))
	item = nil
	runtime.GC()
	require.Nil(t, weakly.Value())
	require.Equal(t, 1, q.Len())
	runtime.KeepAlive(q)
}

func TestGet_WaitsForWhatWillBeQueuedAndThenEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newWork(t, queue.WorkQueueConfig[string]{})
		require.NoError(t, q.Add("foo"))
		get(t, q)
		require.NoError(t, q.Add("foo"), "it will be queued again")
		q.ShutDown()
		ended := make(chan string, 3)
		for range cap(ended) {
			go func() {
				item, err := q.Get(context.Background())
				ended <- item + printErr(err)
			}()
		}
		synctest.Wait()
		require.Empty(t, ended)
		q.Done("foo")
		require.ElementsMatch(t, []string{"foo", "work queue shut down\n", "work queue shut down\n"}, []string{<-ended, <-ended, <-ended})
	})
}

func TestGet_EndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newWork(t, queue.WorkQueueConfig[string]{})
		ctx, cancel := context.WithCancel(t.Context())
		ended, got := make(chan error, 1), make(chan string, 1)
		go func() {
			_, err := q.Get(ctx)
			ended <- err
		}()
		go func() { got <- get(t, q) }()
		synctest.Wait()
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		require.NoError(t, q.Add("foo"))
		require.Equal(t, "foo", <-got, "the other worker still waits")
		q.Done("foo")
		require.NoError(t, q.Add("foo"))
		_, err := q.Get(ctx)
		require.ErrorIs(t, err, context.Canceled)
	})
}

func TestAdd_RefusesIncomparableItems(t *testing.T) {
	q := newWork(t, queue.WorkQueueConfig[any]{Clock: clock.Real()})
	require.NoError(t, q.Add("x"))
	var panicked *usercode.PanicError
	require.ErrorAs(t, q.Add([]int{1}), &panicked)
	require.ErrorAs(t, q.AddAfter([]int{1}, time.Hour), &panicked)
	q.Done([]int{1})
	require.Equal(t, []any{"x"}, do(t, q), "the queue goes on")
	require.Empty(t, q.ShutDown())
}

func TestWorkQueue_ConfigErrors(t *testing.T) {
	_, limiter := queue.NewWorkQueue(queue.WorkQueueConfig[int]{Limiter: queue.NewDefaultRateLimiter[int]()})
	_, metrics := queue.NewWorkQueue(queue.WorkQueueConfig[int]{Metrics: new(recorder)})
	_, drain := queue.NewWorkQueue(queue.WorkQueueConfig[int]{Drain: 9})
	for _, err := range []error{limiter, metrics, drain} {
		require.ErrorIs(t, err, queue.ErrConfig)
		var configErr *queue.ConfigError
		require.ErrorAs(t, err, &configErr)
		require.Contains(t, err.Error(), configErr.Field)
	}
	q := newWork(t, queue.WorkQueueConfig[int]{})
	require.ErrorIs(t, q.AddAfter(1, time.Second), queue.ErrNoClock)
	require.ErrorIs(t, q.AddRateLimited(1), queue.ErrNoLimiter)
	q.Forget(1)
	require.Zero(t, q.NumRequeues(1))
}

// recorder is metrics that remember.
type recorder struct {
	queue.NoWorkQueueMetrics
	calls  []string
	panics bool
}

func (r *recorder) note(format string, args ...any) {
	if r.panics {
		panic("metrics")
	}
	r.calls = append(r.calls, fmt.Sprintf(format, args...))
}

func (r *recorder) Added(depth int) { r.note("added %d", depth) }

func (r *recorder) Started(depth int, waited time.Duration) { r.note("started %d %v", depth, waited) }

func (r *recorder) Finished(took time.Duration) { r.note("finished %v", took) }

func (r *recorder) Retried() { r.note("retried") }

func TestMetrics_AreToldOfEachStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := new(recorder)
		q := newWork(t, queue.WorkQueueConfig[string]{Clock: clock.Real(), Metrics: r})
		expect := func(calls ...string) {
			t.Helper()
			require.Equal(t, calls, r.calls)
			r.calls = nil
		}
		require.NoError(t, q.Add("foo"))
		require.NoError(t, q.Add("foo"))
		expect("added 1")
		time.Sleep(50 * time.Microsecond)
		get(t, q)
		expect("started 0 50µs")
		require.NoError(t, q.Add("foo"))
		expect("added 1")
		time.Sleep(25 * time.Microsecond)
		require.Equal(t, queue.WorkQueueStats{Running: 1, Unfinished: 25 * time.Microsecond, Longest: 25 * time.Microsecond}, q.Stats())
		q.Done("foo")
		expect("finished 25µs")
		get(t, q)
		expect("started 0 25µs")
		require.NoError(t, q.Add("bar"))
		get(t, q)
		time.Sleep(time.Second)
		require.Equal(t, 2*time.Second, q.Stats().Unfinished)
		require.NoError(t, q.AddAfter("late", time.Hour))
		require.Equal(t, 1, q.Stats().Delayed)
		q.Done("foo")
		q.Done("bar")
		expect("added 1", "started 0 0s", "retried", "finished 1s", "finished 1s")

		q.ShutDown()
		require.ErrorIs(t, q.Add("foo"), queue.ErrShutDown)
		require.ErrorIs(t, q.AddAfter("foo", 0), queue.ErrShutDown)
		time.Sleep(2 * time.Hour)
		require.Empty(t, r.calls, "none after the shutdown")
	})
}

func TestMetrics_PanicIsContainedAndReported(t *testing.T) {
	r := &recorder{panics: true}
	q := newWork(t, queue.WorkQueueConfig[string]{Clock: clock.Real(), Metrics: r})
	require.NoError(t, q.Add("foo"))
	require.Equal(t, []string{"foo"}, do(t, q))
	var panicked *usercode.PanicError
	require.ErrorAs(t, q.Stats().MetricsErr, &panicked)
	r.panics = false
	require.NoError(t, q.Add("foo"))
	require.Empty(t, r.calls, "it is called no more")
}
