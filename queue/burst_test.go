package queue_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/queue"
)

// An outage fills a queue with all that there is. Once it is empty again, it is as small as
// before.
func TestQueues_ReleaseTheMemoryOfABurst(t *testing.T) {
	const items = 50_000 // each takes 8 bytes or more
	for name, burst := range map[string]func(t *testing.T) (empty any){
		"items that wait": func(t *testing.T) any {
			q := newWork(t, queue.WorkQueueConfig[int]{})
			for n := range items {
				_ = q.Add(n)
			}
			require.Equal(t, items, q.Len())
			work(q)
			return q
		},
		"items that workers have": func(t *testing.T) any {
			q := newWork(t, queue.WorkQueueConfig[int]{})
			for n := range items {
				_ = q.Add(n)
				_, _ = q.TryGet()
			}
			require.Equal(t, items, q.Stats().Running)
			for n := range items {
				q.Done(n)
			}
			require.Zero(t, q.Stats().Running)
			return q
		},
		"delayed items": func(t *testing.T) any {
			virtual := clock.NewVirtual(epoch)
			q := newWork(t, queue.WorkQueueConfig[int]{Clock: virtual})
			for n := range items {
				_ = q.AddAfter(n, time.Second)
			}
			virtual.Advance(time.Second)
			require.Equal(t, items, q.Len())
			work(q)
			return q
		},
		"limited items": func(t *testing.T) any {
			limiter := queue.NewDefaultRateLimiter[int]()
			for n := range items {
				limiter.When(n, epoch)
			}
			require.Equal(t, 1, limiter.NumRequeues(items-1))
			for n := range items {
				limiter.Forget(n)
			}
			return limiter
		},
		"FIFO": func(t *testing.T) any {
			q := newFIFO(t)
			for n := range items {
				_ = q.Add(thing{Name: fmt.Sprint(n)})
			}
			require.Equal(t, items, q.Len())
			for range items {
				_ = q.Pop(t.Context(), func(thing, bool) error { return nil })
			}
			require.Zero(t, q.Len())
			return q
		},
		"Heap": func(t *testing.T) any {
			q, err := queue.NewHeap(queue.HeapConfig[thing]{Key: thingKey, Less: func(a, b thing) bool { return a.Name < b.Name }})
			require.NoError(t, err)
			for n := range items {
				_ = q.Add(thing{Name: fmt.Sprint(n)})
			}
			require.Equal(t, items, q.Len())
			for range items {
				_, _ = q.Pop(t.Context())
			}
			require.Zero(t, q.Len())
			return q
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := reachable()
			empty := burst(t)
			require.Less(t, reachable(), before+1<<18)
			runtime.KeepAlive(empty)
		})
	}
}

// work processes all items that wait.
func work(q *queue.WorkQueue[int]) {
	for {
		item, ok := q.TryGet()
		if !ok {
			return
		}
		q.Done(item)
	}
}

// reachable returns how many bytes of the heap are in use.
func reachable() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
