package bench

import (
	"context"
	"math"
	"runtime"
	"time"
)

// The metrics of watchers that do nothing.
const (
	BytesPerWatcher      = "bytes/watcher"
	GoroutinesPerWatcher = "goroutines/watcher"
	Subscriptions        = "subscriptions"
)

// idle is W7 and W8: the cost of watchers without events.
func idle() []Workload {
	return []Workload{
		{
			ID: "W7", Text: "100,000 idle watchers of everything",
			Full:  Params{Watchers: 100_000},
			Small: Params{Watchers: 5000},
			Goals: []Goal{atMostAbsolute(BytesPerWatcher, 500), atMostAbsolute(GoroutinesPerWatcher, 0.01)},
			Run:   footprint(nil), Floor: footprintFloor, Able: onStore, Apart: true,
		},
		{
			ID: "W7/handler", Text: "100,000 idle watchers of everything, each with a handler",
			Full:  Params{Watchers: 100_000},
			Small: Params{Watchers: 5000},
			Goals: []Goal{atMostAbsolute(BytesPerWatcher, 600), atMostAbsolute(GoroutinesPerWatcher, 0.01)},
			Run:   footprint(func(int64) {}), Floor: footprintFloor, Able: onStore, Apart: true,
		},
		{
			ID: "W8", Text: "subscribe and unsubscribe, one at a time",
			Full:  Params{Objects: 100, Events: 50_000},
			Small: Params{Objects: 10, Events: 200},
			Goals: []Goal{atMost(P50, 0.6), atLeast(Subscriptions, 1)},
			Run:   on(overStorage, subscribe), Floor: subscribeFloor, Able: onStore,
		},
	}
}

// footprint returns a run that measures watchers with this handler, whose consumers may take
// memory of their own, or without a consumer if it is nil.
func footprint(handle func(seq int64)) runner {
	return on(overStorage, func(ctx context.Context, s Store, p Params) (Result, error) {
		if _, err := fill(ctx, s, 1, objects(1)); err != nil {
			return nil, err
		}
		watches := make([]Watch, p.Watchers)
		before := measureFootprint()
		for i := range watches {
			w, err := s.Watch(ctx, Selection{}, 0, handle)
			if err != nil {
				return nil, err
			}
			watches[i] = w
		}
		result := measureFootprint().per(before, p.Watchers)
		runtime.KeepAlive(watches)
		return result, nil
	})
}

// subscribe opens and stops watches and times each pair. The rate includes the
// cleanup after the last Stop.
func subscribe(ctx context.Context, s Store, p Params) (Result, error) {
	rev, err := fill(ctx, s, p.Objects, objects(p.Objects))
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	result, err := timed(Subscriptions, p.Events, func(int) error {
		w, err := s.Watch(ctx, Selection{}, rev, func(int64) {})
		if err == nil {
			w.Stop()
		}
		return err
	})
	if err == nil {
		err = s.Settle(ctx)
	}
	if err != nil {
		return nil, err
	}
	result[0] = rate(Subscriptions, int64(p.Events), time.Since(begin))
	return result, nil
}

// timed calls do n times in sequence and returns its rate and latency.
func timed(name string, n int, do func(i int) error) (Result, error) {
	l := newLatency()
	begin := time.Now()
	for i := range n {
		before := time.Now()
		if err := do(i); err != nil {
			return nil, err
		}
		l.add(int64(time.Since(before)))
	}
	took := time.Since(begin)
	return append(Result{rate(name, int64(n), took)}, l.metrics()...), nil
}

// memory is a process's memory and goroutines.
type memory struct{ bytes, goroutines int64 }

// Finalizers, pools and ending goroutines release memory only over several
// collections: collect runs up to mostCollections, until one frees less than the
// share settled.
const (
	mostCollections = 20
	settled         = 0.001
)

// measureFootprint returns the live heap, the stacks and the goroutines.
func measureFootprint() memory {
	last := collect()
	for range mostCollections {
		now := collect()
		if math.Abs(float64(now.bytes-last.bytes)) < settled*float64(last.bytes) {
			return now
		}
		last = now
	}
	return last
}

func collect() memory {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return memory{int64(m.HeapAlloc + m.StackInuse), int64(runtime.NumGoroutine())}
}

// per returns the increase since before, divided by n. Goroutines that have ended since then, as those that have opened
// the store, are not fewer goroutines of watchers.
func (m memory) per(before memory, n int) Result {
	return Result{
		{Name: BytesPerWatcher, Unit: " B", Value: float64(m.bytes-before.bytes) / float64(n)},
		{Name: GoroutinesPerWatcher, Value: float64(max(0, m.goroutines-before.goroutines)) / float64(n)},
	}
}
