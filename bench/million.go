package bench

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
)

// pageSize is how many objects a page of W19 has.
const pageSize = 500

// The metrics of W19.
const (
	// Paged is the rate at which a list is read page by page, in objects per second.
	Paged = "paged"
	// Initial is the rate at which initial states are delivered, in objects per
	// second over all watchers.
	Initial = "initial state"
)

// StateStore is a Store with pages and with watches that begin with the state.
type StateStore interface {
	Store
	// Pages lists everything in pages of size objects and returns how many objects
	// there were.
	Pages(ctx context.Context, size int) (int, error)
	// WatchState calls handle for each object that there is, and then for every
	// change.
	WatchState(ctx context.Context, handle func(seq int64)) (Watch, error)
}

// million is W19: a large state.
func million() []Workload {
	return []Workload{{
		ID: "W19", Text: "1,000,000 objects: load, list in pages of 500, initial state to 100 watchers, memory",
		Full:  Params{Watchers: 100, Objects: 1_000_000},
		Small: Params{Watchers: 2, Objects: 10_000}, // enough to outweigh memory that earlier tests free meanwhile
		Goals: []Goal{atMostAbsolute(Overhead, 600), {Metric: Load, Least: true, Bound: 500_000, To: ToOne}},
		Run:   large, Floor: largeFloor, Able: onlyOurs, Apart: true,
	}}
}

func large(ctx context.Context, c Contender, p Params) (Result, error) {
	own := c.bareBytes(p.Objects, 0)
	return run(ctx, c, c.Store, func(ctx context.Context, s Store) (Result, error) {
		object := objects(p.Objects)
		before := measureFootprint()
		begin := time.Now()
		if _, err := fill(ctx, s, p.Objects, object); err != nil {
			return nil, err
		}
		result := Result{rate(Load, int64(p.Objects), time.Since(begin))}
		beyond := measureFootprint().bytes - before.bytes - own
		runtime.KeepAlive(object)
		result = append(result, overhead(beyond, p.Objects))
		return readLarge(ctx, s.(StateStore), p, result)
	})
}

// readLarge adds the rates of reading.
func readLarge(ctx context.Context, s StateStore, p Params, result Result) (Result, error) {
	begin := time.Now()
	n, err := s.Pages(ctx, pageSize)
	if err != nil {
		return nil, err
	}
	if n != p.Objects {
		return nil, fmt.Errorf("pages have %d objects instead of %d", n, p.Objects)
	}
	result = append(result, rate(Paged, int64(n), time.Since(begin)))
	took, err := initialStates(ctx, s, p)
	return append(result, rate(Initial, int64(p.Objects)*int64(p.Watchers), took)), err
}

// initialStates opens the watches at once and returns when each has the state.
func initialStates(ctx context.Context, s StateStore, p Params) (time.Duration, error) {
	var left atomic.Int64
	left.Store(int64(p.Watchers))
	done := make(chan struct{})
	begin := time.Now()
	for range p.Watchers {
		missing := p.Objects
		w, err := s.WatchState(ctx, func(int64) {
			if missing--; missing == 0 && left.Add(-1) == 0 {
				close(done)
			}
		})
		if err != nil {
			return 0, err
		}
		defer w.Stop()
	}
	select {
	case <-done:
		return time.Since(begin), nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// largeFloor puts the objects into a map.
func largeFloor(_ context.Context, p Params) (Result, error) {
	object, all := objects(p.Objects), make(map[string]*Object)
	begin := time.Now()
	for i := range p.Objects {
		o := object(i)
		all[o.Key()] = &o
	}
	result := Result{rate(Load, int64(p.Objects), time.Since(begin))}
	runtime.KeepAlive(all)
	return result, nil
}
