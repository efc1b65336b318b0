package actors_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
)

// countdown is a task that only counts its turn.
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

// counter is the smallest wake actor: it counts its turns.
type counter struct {
	actors.WakeBox
	wg *sync.WaitGroup
}

func (c *counter) Woken(*actors.Context) bool {
	c.wg.Done()
	return false
}

// runner calls the functions that it receives, for example to spawn children.
type runner struct{}

func (runner) Receive(ctx *actors.Context, f func(*actors.Context)) { f(ctx) }

func newRunner() actors.Behavior[func(*actors.Context)] { return runner{} }

// spawnCounters spawns n wake actors under one parent and returns when they
// have started.
func spawnCounters(tb testing.TB, sys *actors.System, n int, wg *sync.WaitGroup) []*actors.WakeBox {
	parent := actors.Spawn(sys, "hub", newRunner, actors.Options{})
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
// smallest Waker (a pointer beside its WakeBox), in a system of its own.
// B/burst is the memory that the queue of the pool keeps after the burst of all
// starts, until it has become empty often enough (see keepRuns), per actor too.
func BenchmarkIdleWakeActor(b *testing.B) {
	for _, n := range []int{10_000, 20_000, 100_000} {
		b.Run(fmt.Sprintf("actors=%d", n), func(b *testing.B) {
			for b.Loop() {
				idle, burst := idleWakeActor(b, n)
				b.ReportMetric(idle, "B/actor")
				b.ReportMetric(burst, "B/burst")
			}
		})
	}
}

// idleWakeActor returns the bytes per idle wake actor among n, and the further
// bytes per actor that the queue of the pool frees some turns later.
func idleWakeActor(tb testing.TB, n int) (idle, burst float64) {
	sys := newSystem(tb, actors.SystemConfig{})
	before := heap()
	var wg sync.WaitGroup
	boxes := spawnCounters(tb, sys, n, &wg)
	started := heap()
	for range 100 {
		wg.Add(1)
		boxes[0].Wake()
		wg.Wait()
	}
	settled := heap()
	runtime.KeepAlive(boxes)
	per := func(from, to uint64) float64 { return float64(int64(to)-int64(from)) / float64(n) }
	return per(before, settled), per(settled, started)
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

// relay passes each message on to the next actor, less one, and reports 0.
type relay struct {
	next *actors.Ref[int]
	done chan<- struct{}
}

func (r *relay) Receive(_ *actors.Context, n int) {
	switch {
	case n > 0:
		r.next.Tell(n - 1)
	default:
		r.done <- struct{}{}
	}
}

// spawnRing spawns relays under one parent. The last passes on to the first, which
// is returned.
func spawnRing(sys *actors.System, size int, done chan<- struct{}) *actors.Ref[int] {
	first := make(chan *actors.Ref[int])
	parent := actors.Spawn(sys, "ring", newRunner, actors.Options{})
	parent.Tell(func(ctx *actors.Context) {
		ring := make([]*relay, size)
		refs := make([]*actors.Ref[int], size)
		for i := range ring {
			ring[i] = &relay{done: done}
			refs[i] = actors.Spawn(ctx, fmt.Sprint("relay", i), func() actors.Behavior[int] { return ring[i] }, actors.Options{})
		}
		for i := range ring {
			ring[i].next = refs[(i+1)%size]
		}
		first <- refs[0]
	})
	return <-first
}

// BenchmarkRelay measures hops between actors where there is nothing else to do: a
// message that goes round three actors for ever ("ring"), and one that comes from
// a goroutine, goes through three actors and back ("outside").
//
// A hop wakes no thread: a ring makes about 3 futex calls in 1,000 hops. The Go
// scheduler queues the worker that a submission signals behind the one that
// submits, which takes the task itself meanwhile. Tokio's slot (a task that a turn
// submits is run next by the same worker, past the queue) was tried with the
// worker known exactly, which takes a Context in every send. It saves the lock and
// the queue, 49 of 182 ns a hop in the ring. It saves nothing that can be told
// from noise where 700 messages come a millisecond apart (8 rounds: 6.4 to 12.9
// µs for three hops, 6.8 to 11 µs without; 3.2 futex calls each in both, 3.1 of
// them by a bare channel), which is the case it is meant for. So there is none.
func BenchmarkRelay(b *testing.B) {
	b.Run("ring", func(b *testing.B) {
		done := make(chan struct{})
		first := spawnRing(newSystem(b, actors.SystemConfig{}), 3, done)
		b.ResetTimer()
		first.Tell(b.N)
		<-done
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N), "ns/hop")
	})
	b.Run("outside", func(b *testing.B) {
		done := make(chan struct{})
		first := spawnRing(newSystem(b, actors.SystemConfig{}), 3, done)
		for b.Loop() {
			first.Tell(2)
			<-done
		}
	})
}
