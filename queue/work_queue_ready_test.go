package queue_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/queue"
	"github.com/watchmill/watchmill/usercode"
)

// Workers that are told of items, in place of waiting, get each once.
func TestWorkQueue_TryGetAndOnReady(t *testing.T) {
	ready := 0
	q, err := queue.NewWorkQueue(queue.WorkQueueConfig[string]{OnReady: func() { ready++ }})
	require.NoError(t, err)
	_, ok := q.TryGet()
	require.False(t, ok)
	for _, item := range []string{"a", "a", "b"} {
		require.NoError(t, q.Add(item))
	}
	require.Equal(t, 2, ready, "not for one that is queued already")
	item, ok := q.TryGet()
	require.True(t, ok)
	require.Equal(t, "a", item)
	require.NoError(t, q.Add("a"))
	require.Equal(t, 2, ready, "a worker has it")
	q.Done("a")
	require.Equal(t, 3, ready)
	item, _ = q.TryGet()
	require.Equal(t, "b", item)
	q.ShutDown()
	item, _ = q.TryGet()
	require.Equal(t, "a", item, "what was queued")
	_, ok = q.TryGet()
	require.False(t, ok)
}

// OnReady runs in the middle of each change of the queue, so a panic of it must not leave
// the change undone.
func TestOnReady_PanicIsContainedAndReported(t *testing.T) {
	virtual, ready := clock.NewVirtual(epoch), 0
	q := newWork(t, queue.WorkQueueConfig[string]{Clock: virtual, OnReady: func() {
		ready++
		panic("ready")
	}})
	require.NoError(t, q.Add("a"))
	require.Equal(t, "a", get(t, q))
	require.NoError(t, q.Add("a"))
	q.Done("a")
	require.NoError(t, q.AddAfter("b", time.Second))
	require.NoError(t, q.AddAfter("c", time.Second))
	require.NoError(t, q.AddAfter("d", time.Minute))
	virtual.Advance(time.Second)
	require.Equal(t, 3, q.Len())
	require.Equal(t, 1, q.Stats().Delayed)

	drained := make(chan error, 1)
	go func() { drained <- q.ShutDownWithDrain(t.Context()) }() // which queues d now
	var got []string
	for item, err := q.Get(t.Context()); err == nil; item, err = q.Get(t.Context()) {
		got = append(got, item)
		q.Done(item)
	}
	require.NoError(t, <-drained)
	require.Equal(t, []string{"a", "b", "c", "d"}, got)
	require.Equal(t, 5, ready)
	var panicked *usercode.PanicError
	require.ErrorAs(t, q.Stats().ReadyErr, &panicked)
	require.Equal(t, "WorkQueueConfig.OnReady", panicked.Func)
}

// leavingMetrics end the goroutine whenever an item has been processed.
type leavingMetrics struct{ recorder }

func (*leavingMetrics) Finished(time.Duration) { runtime.Goexit() }

// A function of the user that fails a test, by t.FailNow, ends the goroutine that has called the
// queue, but loses none of its items.
func TestWorkQueue_LosesNoItemWhenItsUsersFunctionsEndTheGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		exits := true
		q := newWork(t, queue.WorkQueueConfig[string]{
			Clock: clock.Real(), Metrics: &leavingMetrics{},
			OnReady: func() {
				if exits {
					runtime.Goexit()
				}
			},
		})
		apart := func(f func()) {
			var done sync.WaitGroup
			done.Go(f)
			done.Wait()
		}
		apart(func() { _ = q.Add("a") })
		require.Equal(t, "a", get(t, q))
		require.NoError(t, q.Add("a"), "again, meanwhile")
		for _, item := range []string{"b", "c"} {
			require.NoError(t, q.AddAfter(item, time.Second))
		}
		for _, item := range []string{"d", "e"} {
			require.NoError(t, q.AddAfter(item, time.Hour))
		}
		apart(func() { q.Done("a") })
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, 3, q.Len(), "a, b and c")
		apart(func() { _ = q.ShutDownWithDrain(t.Context()) })
		exits = false
		drained := make(chan error, 1)
		go func() { drained <- q.ShutDownWithDrain(t.Context()) }()
		var got []string
		for item, err := q.Get(t.Context()); err == nil; item, err = q.Get(t.Context()) {
			got = append(got, item)
			apart(func() { q.Done(item) })
		}
		require.NoError(t, <-drained)
		require.Equal(t, []string{"a", "b", "c", "d", "e"}, got)
	})
}

// leavingRetries are metrics that end the goroutine whenever an item is delayed.
type leavingRetries struct{ recorder }

func (*leavingRetries) Retried() { runtime.Goexit() }

func TestWorkQueue_DelaysAnItemThoughItsMetricsEndTheGoroutine(t *testing.T) {
	virtual := clock.NewVirtual(time.Unix(0, 0))
	q := newWork(t, queue.WorkQueueConfig[string]{Clock: virtual, Metrics: &leavingRetries{}})
	for item, delay := range map[string]time.Duration{"now": 0, "later": time.Second} {
		var done sync.WaitGroup
		done.Go(func() { _ = q.AddAfter(item, delay) })
		done.Wait()
	}
	require.Equal(t, "now", get(t, q))
	virtual.Advance(time.Second)
	require.Equal(t, "later", get(t, q))
}

// failing ends the goroutine of the first worker that is given an item.
type failing struct {
	recorder
	failed bool
}

func (m *failing) Started(int, time.Duration) {
	if !m.failed {
		m.failed = true
		runtime.Goexit()
	}
}

// The item goes to a worker that waits, not to the one whose goroutine has ended.
func TestGet_LosesNoItemWhenTheMetricsEndTheGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newWork(t, queue.WorkQueueConfig[string]{Clock: clock.Real(), Metrics: &failing{}})
		got := make(chan string, 2)
		for range 2 {
			go func() { got <- get(t, q) }()
		}
		synctest.Wait()
		require.NoError(t, q.Add("a"))
		require.Equal(t, "a", <-got)
		q.Done("a")
		require.NoError(t, q.ShutDownWithDrain(t.Context()))
	})
}

func ExampleWorkQueue_TryGet() {
	q, err := queue.NewWorkQueue(queue.WorkQueueConfig[string]{OnReady: func() { fmt.Println("something to do") }})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = q.Add("web-1")
	item, ok := q.TryGet()
	fmt.Println(item, ok, err)
	q.Done(item)
	_, ok = q.TryGet()
	fmt.Println(ok)
	// Output:
	// something to do
	// web-1 true <nil>
	// false
}
