package actors_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
)

// countdown is a task that submits nothing and is counted.
type countdown struct{ wg *sync.WaitGroup }

func (c *countdown) RunTurn() { c.wg.Done() }

// BenchmarkPool measures one turn of nothing, submitted in bursts.
func BenchmarkPool(b *testing.B) {
	for _, boxes := range []int{1_000, 100_000} {
		b.Run(fmt.Sprintf("boxes=%d", boxes), func(b *testing.B) {
			pool := actors.NewPool(0)
			defer pool.Close()
			var wg sync.WaitGroup
			tasks := make([]actors.Task, boxes)
			for i := range tasks {
				tasks[i] = &countdown{&wg}
			}
			b.ReportAllocs()
			for b.Loop() {
				wg.Add(boxes)
				pool.SubmitAll(tasks)
				wg.Wait()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*boxes), "ns/turn")
		})
	}
}

// counter is a wake actor as small as they come.
type counter struct {
	actors.WakeBox
	wg *sync.WaitGroup
}

func (c *counter) Woken(*actors.Context) bool {
	c.wg.Done()
	return false
}

// nursery does what it is told in its own turn, such as to spawn.
type nursery struct{}

func (nursery) Receive(ctx *actors.Context, f func(*actors.Context)) { f(ctx) }

func newNursery() actors.Behavior[func(*actors.Context)] { return nursery{} }

// spawnCounters spawns n wake actors under one parent and returns when they
// have started.
func spawnCounters(tb testing.TB, sys *actors.System, n int, wg *sync.WaitGroup) []*actors.WakeBox {
	parent := actors.Spawn(sys, "hub", newNursery, actors.Options{})
	boxes := make([]*actors.WakeBox, n)
	done := make(chan error)
	parent.Tell(func(ctx *actors.Context) {
		for i := range boxes {
			w := &counter{wg: wg}
			if err := actors.SpawnWake(ctx, w, &w.WakeBox, nil); err != nil {
				done <- err
				return
			}
			boxes[i] = &w.WakeBox
		}
		done <- nil
	})
	require.NoError(tb, <-done)
	wg.Add(n)
	actors.WakeAll(sys.Pool(), boxes)
	wg.Wait()
	return boxes
}

// BenchmarkWakeAll measures waking idle actors and running their turns.
func BenchmarkWakeAll(b *testing.B) {
	for _, n := range []int{10, 1_000, 100_000} {
		b.Run(fmt.Sprintf("boxes=%d", n), func(b *testing.B) {
			sys := newSystem(b, actors.SystemConfig{})
			var wg sync.WaitGroup
			boxes := spawnCounters(b, sys, n, &wg)
			b.ReportAllocs()
			for b.Loop() {
				wg.Add(n)
				actors.WakeAll(sys.Pool(), boxes)
				wg.Wait()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/wake")
		})
	}
}

// BenchmarkIdleWakeActor measures the memory of an idle wake actor, with the
// smallest Waker (16 bytes beside its WakeBox).
func BenchmarkIdleWakeActor(b *testing.B) {
	const n = 100_000
	for b.Loop() {
		sys := newSystem(b, actors.SystemConfig{})
		before := heap()
		var wg sync.WaitGroup
		boxes := spawnCounters(b, sys, n, &wg)
		b.ReportMetric(float64(heap()-before)/n, "B/actor")
		runtime.KeepAlive(boxes)
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

type sink struct{ done chan struct{} }

func (s sink) Receive(_ *actors.Context, n int) {
	if n == 0 {
		close(s.done)
	}
}

// BenchmarkOffer measures a message from one sender to one busy actor.
func BenchmarkOffer(b *testing.B) {
	sys := newSystem(b, actors.SystemConfig{})
	done := make(chan struct{})
	ref := actors.Spawn(sys, "sink", func() actors.Behavior[int] { return sink{done} }, actors.Options{})
	b.ReportAllocs()
	for b.Loop() {
		for ref.Offer(1) == actors.Full {
			runtime.Gosched()
		}
	}
	ref.Tell(0)
	<-done
}
