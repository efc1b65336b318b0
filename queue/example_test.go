package queue_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/queue"
	"github.com/watchmill/watchmill/store/cache"
)

type pod struct{ Name, Phase string }

func podName(p pod) (string, error) { return p.Name, nil }

func ExampleFIFO() {
	q, err := queue.NewFIFO(podName)
	if err != nil {
		fmt.Println(err)
		return
	}
	q.Add(pod{"a", "Pending"})
	q.Add(pod{"b", "Pending"})
	q.Update(pod{"a", "Running"})
	q.Close()

	show := func(p pod, initial bool) error {
		fmt.Println(p.Name, p.Phase)
		return nil
	}
	for err == nil {
		err = q.Pop(context.Background(), show)
	}
	fmt.Println(errors.Is(err, queue.ErrClosed))
	// Output:
	// a Running
	// b Pending
	// true
}

func ExampleDeltaFIFO() {
	mirror, err := cache.NewStore(cache.StoreConfig[pod]{Key: podName})
	if err != nil {
		fmt.Println(err)
		return
	}
	q, err := queue.NewDeltaFIFO(queue.DeltaFIFOConfig[pod]{Key: podName, Known: mirror})
	if err != nil {
		fmt.Println(err)
		return
	}
	mirror.Add(pod{"old", "Running"}) // known from before
	q.Replace([]pod{{"a", "Pending"}}, 7)
	q.Update(pod{"a", "Running"})

	for q.Len() > 0 {
		q.Pop(context.Background(), func(deltas queue.Deltas[pod], initial bool) error {
			for _, d := range deltas {
				if d.Type == queue.DeltaDeleted {
					fmt.Println(d.Key, d.Type, "stale:", d.Deleted.Stale)
					mirror.DeleteByKey(d.Key, 0)
					continue
				}
				fmt.Println(d.Key, d.Type, d.Object.Phase)
				mirror.Update(d.Object)
			}
			return nil
		})
	}
	fmt.Println(mirror.List(), q.HasSynced())
	// Output:
	// a Replaced Pending
	// a Updated Running
	// old Deleted stale: true
	// [{a Running}] true
}

func ExampleRealFIFO() {
	q, err := queue.NewRealFIFO(queue.RealFIFOConfig[pod]{Key: podName})
	if err != nil {
		fmt.Println(err)
		return
	}
	q.Replace([]pod{{"a", "Pending"}, {"b", "Pending"}}, 7)
	q.Update(pod{"b", "Running"})
	q.Delete(pod{"a", "Pending"})
	q.Bookmark(12)

	for q.Len() > 0 {
		q.PopBatch(context.Background(), func(batch []queue.Delta[pod], initial bool) error {
			fmt.Println(batch)
			return nil
		})
	}
	<-q.Done()
	// Output:
	// [ReplacedAll@7 [{a Pending} {b Pending}]]
	// [Updated {b Running} Deleted {a Pending}]
	// [Bookmark@12]
}

func ExampleHeap() {
	type job struct {
		Name string
		Rank int
	}
	h, err := queue.NewHeap(queue.HeapConfig[job]{
		Key:  func(j job) (string, error) { return j.Name, nil },
		Less: func(a, b job) bool { return a.Rank < b.Rank },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	h.BulkAdd([]job{{"sweep", 9}, {"cook", 2}, {"eat", 3}})
	h.Update(job{"sweep", 1})
	for h.Len() > 0 {
		j, err := h.Pop(context.Background())
		fmt.Println(j.Name, err)
	}
	// Output:
	// sweep <nil>
	// cook <nil>
	// eat <nil>
}

func ExampleWorkQueue() {
	q, err := queue.NewWorkQueue(queue.WorkQueueConfig[string]{})
	if err != nil {
		fmt.Println(err)
		return
	}
	q.Add("default/a")
	q.Add("default/b")
	q.Add("default/a") // queued already

	worker := make(chan struct{})
	go func() {
		defer close(worker)
		for {
			key, err := q.Get(context.Background())
			if err != nil {
				fmt.Println(err)
				return
			}
			fmt.Println("reconcile", key)
			q.Done(key)
		}
	}()
	fmt.Println(q.ShutDownWithDrain(context.Background()) == nil)
	<-worker
	// Unordered output:
	// reconcile default/a
	// reconcile default/b
	// true
	// work queue shut down
}

// An item is worked on again when its time has come.
func ExampleWorkQueue_AddAfter() {
	hours := clock.NewVirtual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	q, err := queue.NewWorkQueue(queue.WorkQueueConfig[string]{Clock: hours})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer q.ShutDown()
	if err := q.AddAfter("renew", time.Hour); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("queued at first:", q.Len())
	hours.Advance(time.Hour)
	fmt.Println("queued after an hour:", q.Len())
	// Output:
	// queued at first: 0
	// queued after an hour: 1
}

func ExampleWorkQueue_AddRateLimited() {
	q, err := queue.NewWorkQueue(queue.WorkQueueConfig[string]{
		Clock:   clock.Real(),
		Limiter: queue.NewExponentialRateLimiter[string](time.Millisecond, time.Second),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer q.ShutDown()
	q.Add("flaky")
	for {
		key, err := q.Get(context.Background())
		if err != nil {
			fmt.Println(err)
			return
		}
		if tries := q.NumRequeues(key); tries < 2 {
			fmt.Println("failed, to be tried again")
			q.AddRateLimited(key)
			q.Done(key)
			continue
		}
		fmt.Println("succeeded")
		q.Forget(key)
		q.Done(key)
		return
	}
	// Output:
	// failed, to be tried again
	// failed, to be tried again
	// succeeded
}
