package bench

import (
	"context"
	"runtime"
)

// AllocationsPerWrite is the metric of the allocations of a whole write, from the writer to
// the last handler.
const AllocationsPerWrite = "allocations/write"

// fanOut is W1 to W3: every watcher watches everything.
func fanOut() []Workload {
	return []Workload{
		{
			ID: "W1", Text: "1,000 watchers of everything, one writer as fast as it goes",
			Full:  Params{Watchers: 1000, Objects: 100, Events: 20_000},
			Small: Params{Watchers: 20, Objects: 10, Events: 500},
			Goals: []Goal{atLeast(Deliveries, 100), nearFloor(Deliveries, 1.4), mustBeZero(Lost)},
			Run:   on(overStorage, saturate), Floor: callFloor, Able: onStore,
		},
		{
			ID: "W2", Text: "1,000 watchers of everything, 200 writes/s",
			Full:  Params{Watchers: 1000, Objects: 100, Events: 1000, Rate: 200},
			Small: Params{Watchers: 20, Objects: 10, Events: 60, Rate: 200},
			Goals: []Goal{atMost(P99, 0.12), nearFloor(P50, 3), mustBeZero(Lost)},
			Run:   on(overStorage, paced), Floor: pacedFloor, Able: onStore,
		},
		{
			ID: "W3", Text: "1 watcher of everything, 1,000 writes/s",
			Full:  Params{Watchers: 1, Objects: 100, Events: 5000, Rate: 1000},
			Small: Params{Watchers: 1, Objects: 10, Events: 200, Rate: 1000},
			Goals: []Goal{atMost(P50, 0.65), atMostAbsolute(AllocationsPerWrite, 8), mustBeZero(Lost)},
			Run:   on(overStorage, pacedAlone), Floor: pacedFloor, Able: onStore,
		},
	}
}

// burst is W4: watchers that always read, and a burst of writes that is far larger than
// any buffer between the writer and a watcher.
func burst() []Workload {
	work := func(id, text string, watchers int) Workload {
		return Workload{
			ID: id, Text: text,
			Full:  Params{Watchers: watchers, Objects: 100, Events: 100_000},
			Small: Params{Watchers: watchers / 5, Objects: 10, Events: 2000},
			Goals: []Goal{mustBeZero(LostWatches), mustBeZero(Lost)},
			Run:   on(overStorage, saturate), Floor: callFloor, Able: onStore,
		}
	}
	return []Workload{
		work("W4/10", "10 watchers of everything, a burst of 100,000 writes", 10),
		work("W4/100", "100 watchers of everything, a burst of 100,000 writes", 100),
	}
}

// saturate lets one watcher measure latency: with all of them, the cost of
// reading the clock would dominate.
func saturate(ctx context.Context, s Store, p Params) (Result, error) { return fanOutOn(ctx, s, p, 1) }

// paced lets all watchers measure latency.
func paced(ctx context.Context, s Store, p Params) (Result, error) {
	return fanOutOn(ctx, s, p, p.Watchers)
}

// pacedAlone is paced, and counts the allocations of the writes.
func pacedAlone(ctx context.Context, s Store, p Params) (Result, error) {
	object := objects(p.Objects)
	rev, err := fill(ctx, s, p.Objects, object)
	if err != nil {
		return nil, err
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	result, err := watchWrites(ctx, s, p, p.Watchers, rev, object)
	runtime.ReadMemStats(&after)
	made := float64(after.Mallocs-before.Mallocs) / float64(p.Events)
	return append(result, Metric{Name: AllocationsPerWrite, Value: made}), err
}

// fanOutOn fills s and then writes while p.Watchers watch everything, timed of
// which measure latency.
func fanOutOn(ctx context.Context, s Store, p Params, timed int) (Result, error) {
	object := objects(p.Objects)
	rev, err := fill(ctx, s, p.Objects, object)
	if err != nil {
		return nil, err
	}
	return watchWrites(ctx, s, p, timed, rev, object)
}

// watchWrites writes while p.Watchers watch everything from rev on.
func watchWrites(ctx context.Context, s Store, p Params, timed int, rev uint64, object func(i int) Object) (Result, error) {
	crowd := newCrowd(p.Watchers, timed, newWriter(p, object))
	if err := crowd.open(watching(ctx, s, rev, everything)); err != nil {
		return nil, err
	}
	took, err := crowd.run(ctx, writerTo(s))
	if err != nil {
		return nil, err
	}
	return crowd.result(took), nil
}
