package actors_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
)

func TestPool_RunsTasksInOrder(t *testing.T) {
	pool := actors.NewPool(1)
	var order []int
	var batch []actors.Task
	for i := range 100 {
		pool.Submit(newTask(func() { order = append(order, i) }))
		batch = append(batch, newTask(func() { order = append(order, 100+i) }))
	}
	pool.SubmitAll(batch)
	pool.SubmitAll(nil)
	pool.Close()
	require.Len(t, order, 200)
	require.IsIncreasing(t, order)
}

func TestPool_CloseFinishesWhatTurnsSubmit(t *testing.T) {
	pool := actors.NewPool(2)
	require.Equal(t, 2, pool.Workers())
	var ran atomic.Int64
	var again func(n int) actors.Task
	again = func(n int) actors.Task {
		return newTask(func() {
			ran.Add(1)
			if n > 1 {
				pool.Submit(again(n - 1))
			}
		})
	}
	pool.Submit(again(1_000))
	pool.Close()
	require.EqualValues(t, 1_000, ran.Load())
	pool.Close()
	pool.Submit(again(1))
	pool.SubmitAll([]actors.Task{again(1)})
	require.EqualValues(t, 1_000, ran.Load(), "after Close nothing runs")
}

func TestPool_LosesNothingUnderConcurrentSubmits(t *testing.T) {
	const senders, each = 8, 2_000
	pool := actors.NewPool(0)
	require.Equal(t, runtime.GOMAXPROCS(0), pool.Workers())
	var ran atomic.Int64
	count := newTask(func() { ran.Add(1) })
	var wg sync.WaitGroup
	for range senders {
		wg.Go(func() {
			for range each / 4 {
				pool.Submit(count)
				pool.SubmitAll([]actors.Task{count, count, count})
			}
		})
	}
	wg.Wait()
	pool.Close()
	require.EqualValues(t, senders*each, ran.Load())
}

func TestPool_WakesAWorkerForEachTask(t *testing.T) {
	const workers = 4
	pool := actors.NewPool(workers)
	defer pool.Close()
	for range 50 {
		// Each task waits for all others, so each needs a worker of its own.
		var all sync.WaitGroup
		all.Add(workers)
		meet := newTask(func() { all.Done(); all.Wait() })
		pool.SubmitAll([]actors.Task{meet, meet, meet, meet})
		all.Wait()
	}
}

func TestPool_ReplacesAWorkerThatExits(t *testing.T) {
	pool := actors.NewPool(1)
	var ran atomic.Int64
	var batch []actors.Task
	for i := range 100 {
		batch = append(batch, newTask(func() {
			ran.Add(1)
			if i%10 == 0 {
				runtime.Goexit()
			}
		}))
	}
	pool.SubmitAll(batch)
	pool.Close()
	require.EqualValues(t, 100, ran.Load())
}

func TestPool_FreesTheMemoryOfABurst(t *testing.T) {
	pool := actors.NewPool(1)
	defer pool.Close()
	before := heap()
	none := newTask(func() {})
	func() {
		burst := make([]actors.Task, 1<<20)
		for i := range burst {
			burst[i] = none
		}
		pool.SubmitAll(burst)
	}()
	done := make(chan struct{})
	tick := newTask(func() { done <- struct{}{} })
	for range 200 { // it is kept for a while, lest the next burst allocate again
		pool.Submit(tick)
		<-done
	}
	require.Less(t, int64(heap())-int64(before), int64(1<<20), "of 16 MB")
}

func TestPool_AnIdleWorkerKeepsNoTask(t *testing.T) {
	pool := actors.NewPool(1)
	defer pool.Close()
	const size = 17 // a large batch and a small one
	var freed atomic.Int64
	func() {
		tasks := make([]actors.Task, size)
		for i := range tasks {
			tk := &task{func() {}}
			runtime.AddCleanup(tk, func(struct{}) { freed.Add(1) }, struct{}{})
			tasks[i] = tk
		}
		pool.SubmitAll(tasks)
	}()
	for freed.Load() < size {
		runtime.GC()
		runtime.Gosched()
	}
}
