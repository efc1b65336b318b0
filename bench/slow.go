package bench

import (
	"context"
	"fmt"
	"time"
)

// The metrics of watchers that do not read.
const (
	// Tax is the 99th percentile of the healthy watchers' latency, as a multiple of the
	// same without stalled watchers.
	Tax = "p99 / p99 alone"
	// StalledLost is the share of events that the stalled watchers can no longer read.
	StalledLost = "stalled lost"
	// ForceClosed is the number of watchers closed for not reading.
	ForceClosed = "force-closed"
)

// slow is W12 and W12b: stalled watchers and healthy ones on the same store.
func slow() []Workload {
	never := func(id, text string, full, small Params, timed func(Params) int) Workload {
		return Workload{
			ID: id, Text: text, Full: full, Small: small,
			Goals: []Goal{atMostAbsolute(Tax, 1.1), mustBeZero(Lost), mustBeZero(StalledLost)},
			Run:   neverReading(timed), Floor: callFloor, Able: onStore,
		}
	}
	all := []Workload{
		never("W12", "10 of 1,000 watchers never read, one writer as fast as it goes",
			Params{Watchers: 1000, Idle: 10, Objects: 100, Events: 20_000},
			Params{Watchers: 20, Idle: 2, Objects: 10, Events: 500},
			func(Params) int { return 1 }),
		never("W12/paced", "10 of 1,000 watchers never read, 200 writes/s",
			Params{Watchers: 1000, Idle: 10, Objects: 100, Events: 1000, Rate: 200},
			Params{Watchers: 20, Idle: 2, Objects: 10, Events: 60, Rate: 200},
			func(p Params) int { return p.Watchers - p.Idle }),
	}
	return append(all, slowWatcherTax()...)
}

// neverReading returns a run that measures the healthy watchers alone, then together with
// p.Idle watches that are not read, and that then reads the latter.
func neverReading(timed func(Params) int) runner {
	return func(ctx context.Context, c Contender, p Params) (Result, error) {
		healthy := p
		healthy.Watchers -= p.Idle
		alone, err := run(ctx, c, c.Store, func(ctx context.Context, s Store) (Result, error) {
			return fanOutOn(ctx, s, healthy, timed(p))
		})
		if err != nil {
			return nil, err
		}
		return run(ctx, c, c.Store, func(ctx context.Context, s Store) (Result, error) {
			return besideStalled(ctx, s, p, timed(p), alone)
		})
	}
}

func besideStalled(ctx context.Context, s Store, p Params, timed int, alone Result) (Result, error) {
	object := objects(p.Objects)
	rev, err := fill(ctx, s, p.Objects, object)
	if err != nil {
		return nil, err
	}
	stalled := make([]Watch, p.Idle)
	for i := range stalled {
		if stalled[i], err = s.Watch(ctx, Selection{}, rev, nil); err != nil {
			return nil, err
		}
	}
	p.Watchers -= p.Idle
	result, err := watchWrites(ctx, s, p, timed, rev, object)
	if err != nil {
		return nil, err
	}
	return append(result, latencyTax(result, alone), percent(StalledLost, missing(ctx, stalled, p.Events), int64(p.Idle*p.Events))), nil
}

// latencyTax compares the latencies of two runs.
func latencyTax(with, without Result) Metric {
	a, _ := with.Get(P99)
	b, _ := without.Get(P99)
	return Metric{Name: Tax, Unit: "×", Value: a.Value / b.Value}
}

// missing reads the watches, each of which should have that many events, and
// returns how many are missing.
func missing(ctx context.Context, watches []Watch, events int) (lost int64) {
	for _, w := range watches {
		lost += int64(events - w.Drain(ctx, events))
	}
	return lost
}

// companion describes the second watcher, beside the healthy one, in a scenario of
// Kubernetes' BenchmarkSlowWatcherTax.
type companion struct {
	// present: there is a companion. drains: it reads its events. reconnects: it is
	// replaced every half second.
	present, drains, reconnects bool
}

// reconnectEvery is long enough for a stalled companion of the original benchmark to fill
// its channels and to block the dispatcher.
const reconnectEvery = 500 * time.Millisecond

// slowWatcherTax is W12b: the original's six scenarios, of 10 seconds each.
func slowWatcherTax() []Workload {
	var all []Workload
	for _, scenario := range []struct {
		name string
		rate int
		companion
	}{
		{"baseline", 100, companion{}},
		{"draining-companion", 100, companion{present: true, drains: true, reconnects: true}},
		{"stalled-once", 100, companion{present: true}},
		{"stalled-reconnecting", 100, companion{present: true, reconnects: true}},
		{"baseline-1000", 1000, companion{}},
		{"stalled-reconnecting-1000", 1000, companion{present: true, reconnects: true}},
	} {
		all = append(all, Workload{
			ID:    "W12b/" + scenario.name,
			Text:  fmt.Sprintf("Kubernetes' BenchmarkSlowWatcherTax: %s, %d writes/s", scenario.name, scenario.rate),
			Full:  Params{Watchers: 1, Objects: 1000, Events: 10 * scenario.rate, Rate: scenario.rate},
			Small: Params{Watchers: 1, Objects: 10, Events: scenario.rate * 6 / 10, Rate: scenario.rate},
			Goals: scenario.goals(), Run: on(overStorage, scenario.beside), Floor: pacedFloor, Able: onStore,
		})
	}
	return all
}

// goals compares the tax only where a companion stalls.
func (c companion) goals() []Goal {
	goals := []Goal{mustBeZero(Lost), mustBeZero(ForceClosed)}
	if c.present && !c.drains {
		goals = append([]Goal{atMost(P99, 0.1)}, goals...)
	}
	return goals
}
