package engine_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
)

// counter is what a handler counts in, on a cache line of its own. Only its own
// watcher writes it.
type counter struct {
	n int
	_ [7]uint64
}

// BenchmarkFanOut writes one object again and again to watchers that only
// count, until all have seen all: the engine saturated.
func BenchmarkFanOut(b *testing.B) {
	for _, watchers := range []int{1, 10, 100, 1000} {
		for _, onPool := range []bool{false, true} {
			b.Run(fmt.Sprintf("watchers=%d/pool=%t", watchers, onPool), func(b *testing.B) { benchmarkFanOut(b, watchers, onPool) })
		}
	}
}

func benchmarkFanOut(b *testing.B, watchers int, onPool bool) {
	ctx := b.Context()
	e := benchEngine(b)
	counts := make([]counter, watchers)
	last := make(chan struct{}, watchers)
	final := engine.Revision(b.N + 1)
	for i := range counts {
		c := &counts[i]
		_, err := e.Handle(ctx, engine.WatchOptions{OnPool: onPool}, func(ev engine.Event[pod]) {
			if c.n++; ev.Revision == final {
				last <- struct{}{}
			}
		})
		require.NoError(b, err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	b.ResetTimer()
	for i := range b.N {
		if _, err := e.Put(ctx, pod{Name: "a", App: "web", N: i + 1}); err != nil {
			b.Fatal(err)
		}
	}
	for range counts {
		<-last
	}
	b.StopTimer()
	runtime.ReadMemStats(&after)
	deliveries := float64(b.N) * float64(watchers)
	b.ReportMetric(deliveries/b.Elapsed().Seconds(), "deliveries/s")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/deliveries, "allocs/delivery")
}

func benchEngine(b *testing.B) *engine.Engine[pod] {
	e, err := engine.New(cfg())
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, e.Close()) })
	require.NoError(b, e.WaitForRevision(b.Context(), 0))
	return e
}

// BenchmarkIdleWatchers measures what a watch costs while nothing happens, all
// included: its actor, its handle, its place in the dispatcher.
func BenchmarkIdleWatchers(b *testing.B) {
	const watchers = 100_000
	for range b.N {
		b.StopTimer()
		e := benchEngine(b)
		held := make([]*engine.Watch[pod], watchers)
		before, goroutines := heapInUse(), runtime.NumGoroutine()
		b.StartTimer()
		for i := range held {
			w, err := e.Watch(context.Background(), engine.WatchOptions{})
			if err != nil {
				b.Fatal(err)
			}
			held[i] = w
		}
		b.StopTimer()
		b.ReportMetric(float64(heapInUse()-before)/watchers, "B/watcher")
		b.ReportMetric(float64(runtime.NumGoroutine()-goroutines)/watchers, "goroutines/watcher")
		runtime.KeepAlive(held)
		require.NoError(b, e.Close())
	}
}

// heapInUse is the heap and stacks that are in use after a collection.
func heapInUse() uint64 {
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

func BenchmarkListAll(b *testing.B) {
	ctx := b.Context()
	e := benchEngine(b)
	var rev engine.Revision
	for i := range 10_000 {
		var err error
		rev, err = revisionOf(e.Create(ctx, pod{Name: fmt.Sprintf("pod-%05d", i), App: "web"}))
		require.NoError(b, err)
	}
	require.NoError(b, e.WaitForRevision(ctx, rev))
	for name, read := range map[string]engine.Read{"cached": engine.Cached(), "latest": engine.Latest()} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := e.List(ctx, engine.ListOptions{Read: read}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkGetCached(b *testing.B) {
	ctx := b.Context()
	e := benchEngine(b)
	rev, err := revisionOf(e.Create(ctx, pod{Name: "a"}))
	require.NoError(b, err)
	require.NoError(b, e.WaitForRevision(ctx, rev))
	for b.Loop() {
		if _, err := e.Get(ctx, "a", engine.GetOptions{Read: engine.Cached()}); err != nil {
			b.Fatal(err)
		}
	}
}
