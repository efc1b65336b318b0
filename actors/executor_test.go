package actors_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
)

// task is a Task made of a function.
type task struct{ f func() }

func (t *task) RunTurn() { t.f() }

func newTask(f func()) actors.Task { return &task{f} }

func TestPoolRunsInOrder(t *testing.T) {
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

func TestPoolCloseFinishesWhatTurnsSubmit(t *testing.T) {
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

func TestPoolLosesNothingUnderConcurrentSubmits(t *testing.T) {
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

func TestPoolWakesEnoughWorkers(t *testing.T) {
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

func TestPoolReplacesAWorkerThatExits(t *testing.T) {
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

func TestABurstDoesNotKeepThePoolsMemory(t *testing.T) {
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

func TestBlockingRunsEveryTurnAtOnce(t *testing.T) {
	const n = 50
	b := actors.NewBlocking()
	var all sync.WaitGroup
	all.Add(n)
	meet := newTask(func() { all.Done(); all.Wait() })
	for range n / 2 {
		b.SubmitAll([]actors.Task{meet, meet})
	}
	require.NoError(t, b.Close(context.Background()))
	require.Zero(t, b.Running())
	require.Equal(t, actors.DefaultThroughput, b.Throughput())
}

func TestBlockingCloseSaysHowManyAreLeft(t *testing.T) {
	b := actors.NewBlocking()
	leave := make(chan struct{})
	stay := newTask(func() { <-leave })
	b.SubmitAll([]actors.Task{stay, stay})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := b.Close(ctx)
	require.ErrorIs(t, err, actors.ErrStillRunning)
	require.ErrorIs(t, err, context.Canceled)
	require.EqualError(t, err, "still running: 2 blocking turns: context canceled")
	close(leave)
	require.NoError(t, b.Close(context.Background()))
}

func TestSeededRunsWhatTurnsSubmit(t *testing.T) {
	s := actors.NewSeeded(7)
	ran := 0
	s.Submit(newTask(func() {
		s.SubmitAll([]actors.Task{newTask(func() { ran++ }), newTask(func() { ran++ })})
	}))
	require.Equal(t, 1, s.RunN(1))
	require.Equal(t, 2, s.Pending())
	require.Equal(t, 2, s.RunN(5))
	require.Equal(t, 2, ran)
	require.Zero(t, s.Run())
}

func TestSeededThroughputIsFrom1To8(t *testing.T) {
	s := actors.NewSeeded(7)
	seen := map[int]bool{}
	for range 1_000 {
		seen[s.Throughput()] = true
	}
	require.Len(t, seen, 8)
	require.True(t, seen[1] && seen[8])
}

func TestSeededRunsOneTurnAtATime(t *testing.T) {
	s := actors.NewSeeded(7)
	ran := 0 // without a lock: -race finds turns that overlap
	for range 1_000 {
		s.Submit(newTask(func() { ran++ }))
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { s.Run() })
	}
	wg.Wait()
	require.Equal(t, 1_000, ran)
}
