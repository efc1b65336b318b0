package cluster

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchmill/watchmill/bench"
)

// The metrics of W24.
const (
	// OfClient is the rate as a multiple of that of the bare client.
	OfClient = "of the bare client"
	// MoreAllocations is how many more allocations a write makes than with the bare client,
	// etcd's included in both.
	MoreAllocations = "more allocations/write"
)

// Workloads is W24: conditional updates of an object of each writer. The floor is the client
// of etcd, with the same requests and values.
func Workloads() []bench.Workload {
	var all []bench.Workload
	for _, size := range []struct{ writers, events int }{{1, 4000}, {64, 20_000}, {512, 40_000}} {
		all = append(all, bench.Workload{
			ID: fmt.Sprint("W24/", size.writers), Text: fmt.Sprintf("%d writers update objects of 256 bytes in etcd", size.writers),
			Full:  bench.Params{Writers: size.writers, Events: size.events},
			Small: bench.Params{Writers: min(size.writers, 8), Events: 2 * stretches},
			Goals: []bench.Goal{
				{Metric: OfClient, Least: true, Bound: 0.95, To: bench.ToOne},
				{Metric: MoreAllocations, Bound: 10, To: bench.ToOne},
			},
			Run: run, Floor: floor, Able: func(bench.Contender) bool { return false },
		})
	}
	return all
}

// stretches is how many times the two sides of a run take turns, so that a disturbance
// affects both. They also take turns at going first.
const stretches = 20

// run writes through the backend, and with the bare client in between.
func run(ctx context.Context, _ bench.Contender, p bench.Params) (bench.Result, error) {
	var result bench.Result
	err := onServer(ctx, func(ctx context.Context, s *server) error {
		through, err := s.backend(ctx, p.Writers)
		if err != nil {
			return err
		}
		ours, bare := &side{writers: through}, &side{writers: s.bare(p.Writers)}
		first, second := ours, bare
		for range stretches {
			if err := errors.Join(first.write(ctx, p.Events/stretches), second.write(ctx, p.Events/stretches)); err != nil {
				return err
			}
			first, second = second, first
		}
		more := (float64(ours.allocations) - float64(bare.allocations)) / float64(ours.writes)
		result = bench.Result{
			ours.rate(),
			{Name: OfClient, Unit: "×", Value: bare.took.Seconds() / ours.took.Seconds(), Higher: true},
			{Name: MoreAllocations, Value: max(0, more)},
		}
		return nil
	})
	return result, err
}

// floor writes with the bare client alone.
func floor(ctx context.Context, p bench.Params) (bench.Result, error) {
	var result bench.Result
	err := onServer(ctx, func(ctx context.Context, s *server) error {
		bare := &side{writers: s.bare(p.Writers)}
		err := bare.write(ctx, p.Events)
		result = bench.Result{bare.rate()}
		return err
	})
	return result, err
}

// side is one side of a comparison, and what it took so far.
type side struct {
	writers     []write
	writes      int
	took        time.Duration
	allocations uint64
}

// write updates the object of a writer.
type write func(context.Context) error

// rate returns the metric of writes per second.
func (s *side) rate() bench.Metric {
	return bench.Metric{Name: bench.Writes, Unit: "/s", Value: float64(s.writes) / s.took.Seconds(), Higher: true}
}

// write makes n writes by all writers at the same time.
func (s *side) write(ctx context.Context, n int) error {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begun := time.Now()
	var left atomic.Int64
	left.Store(int64(n))
	failed := make([]error, len(s.writers))
	var all sync.WaitGroup
	for i, write := range s.writers {
		all.Go(func() {
			for failed[i] == nil && left.Add(-1) >= 0 {
				failed[i] = write(ctx)
			}
		})
	}
	all.Wait()
	s.took += time.Since(begun)
	s.writes += n
	runtime.ReadMemStats(&after)
	s.allocations += after.Mallocs - before.Mallocs
	return errors.Join(failed...)
}
