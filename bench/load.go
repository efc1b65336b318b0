package bench

import (
	"context"
	"runtime"
	"time"
)

// Overhead is the metric of a cache's memory beyond the objects in it, in bytes per
// object. Load is the rate at which the cache is filled, in objects per second.
const (
	Overhead = "overhead/object"
	Load     = "load"
)

// load is W13.
func load() []Workload {
	return []Workload{{
		ID: "W13", Text: "150,000 objects loaded, then updates until the window of 102,400 events is full",
		Full:  Params{Objects: 150_000, Events: 102_400},
		Small: Params{Objects: 10_000, Events: 5000},
		Goals: []Goal{atMost(Overhead, 0.3)},
		Run:   loaded, Floor: loadedFloor, Apart: true,
		Able: func(c Contender) bool { return c.Windowed != nil },
	}}
}

// loaded measures the live heap, minus the objects that a full cache must keep:
// the current ones, and those that the window's events have superseded.
func loaded(ctx context.Context, c Contender, p Params) (Result, error) {
	own := c.bareBytes(p.Objects, p.Events)
	open := func(ctx context.Context) (Store, error) { return c.Windowed(ctx, p.Events) }
	return run(ctx, c, open, func(ctx context.Context, s Store) (Result, error) {
		object := objects(p.Objects)
		before := measureFootprint()
		begin := time.Now()
		if _, err := fill(ctx, s, p.Objects, object); err != nil {
			return nil, err
		}
		took := time.Since(begin)
		if _, err := fill(ctx, s, p.Events, withChanges(object)); err != nil {
			return nil, err
		}
		beyond := measureFootprint().bytes - before.bytes - own
		runtime.KeepAlive(object)
		return Result{overhead(beyond, p.Objects), rate(Load, int64(p.Objects), took)}, nil
	})
}

// bareBytes returns the memory of the objects that do not count as overhead.
func (c Contender) bareBytes(live, superseded int) int64 {
	before := measureFootprint()
	bare := c.Bare(live, superseded)
	after := measureFootprint()
	runtime.KeepAlive(bare)
	return after.bytes - before.bytes
}

// withChanges changes the objects, so that writing them again is a change.
func withChanges(object func(i int) Object) func(i int) Object {
	return func(i int) Object {
		o := object(i)
		o.Seq = int64(i)
		return o
	}
}

func overhead(bytes int64, objects int) Metric {
	return Metric{Name: Overhead, Unit: " B", Value: float64(bytes) / float64(objects)}
}

// loadedFloor measures a map of the objects and a slice of the events.
func loadedFloor(_ context.Context, p Params) (Result, error) {
	type event struct{ before, after *Object }
	live, keys := pointers(p.Objects), make([]string, p.Objects)
	for i, o := range live {
		keys[i] = o.Key()
	}
	before := measureFootprint()
	state, window := make(map[string]*Object, p.Objects), make([]event, p.Events)
	for i, o := range live {
		state[keys[i]] = o
	}
	for i := range window {
		window[i] = event{live[i%len(live)], live[i%len(live)]}
	}
	bytes := measureFootprint().bytes - before.bytes
	runtime.KeepAlive(state)
	runtime.KeepAlive(window)
	runtime.KeepAlive(live)
	return Result{overhead(bytes, p.Objects)}, nil
}
