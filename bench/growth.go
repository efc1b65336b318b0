package bench

import (
	"context"
	"runtime"
	"slices"
)

// matching is the number of watchers that each write of W18 matches.
const matching = 10

// Growth returns the name of the metric of how much another one varies from size to size:
// its largest value divided by its smallest.
func Growth(metric string) string { return "growth of " + metric }

// At returns the name of a metric at one of several sizes.
func At(metric string, size int) string { return metric + " at " + Quantity(float64(size)) }

// growth is W18: the cost of a write as the numbers of watchers and objects grow. The sizes
// are powers of ten up to that of the parameters. The writes at full speed take about a
// second, in which each watcher of the largest size wakes thirty times: in a run that is a
// fraction of it, the first wake of each would be what is measured.
func growth() []Workload {
	flat := []Goal{atMostAbsolute(Growth(Writes), 1.5), atMostAbsolute(Growth(P99), 1.5), mustBeZero(Lost)}
	return []Workload{
		{
			ID: "W18/watchers", Text: "10 to 100,000 watchers, of which 10 match each write, by an indexed field",
			Full:  Params{Watchers: 100_000, Objects: 10_000, Events: 300_000, Rate: 1000},
			Small: Params{Watchers: 100, Objects: 10, Events: 200, Rate: 1000},
			Goals: flat,
			Run:   growing(func(p *Params) *int { return &p.Watchers }, matching),
			Floor: matchFloor, Able: onlyOurs,
		},
		{
			ID: "W18/objects", Text: "1,000 to 1,000,000 objects, 1,000 watchers of which 10 match each write",
			Full:  Params{Watchers: 1000, Objects: 1_000_000, Events: 300_000, Rate: 1000},
			Small: Params{Watchers: 10, Objects: 1000, Events: 200, Rate: 1000}, // some sizes have more objects than writes, as at full size
			Goals: flat,
			Run:   growing(func(p *Params) *int { return &p.Objects }, 1000),
			Floor: matchFloor, Able: onlyOurs,
		},
	}
}

// onlyOurs is for workloads that compare sizes instead of contenders.
func onlyOurs(Contender) bool { return false }

// growing returns a run of several sizes of one parameter. The smallest is least or, if
// that is smaller, a tenth of the parameter.
func growing(parameter func(*Params) *int, least int) runner {
	return func(ctx context.Context, c Contender, p Params) (Result, error) {
		var result Result
		values := make(map[string][]float64)
		largest := *parameter(&p)
		for size := min(least, max(largest/10, 1)); size <= largest; size *= 10 {
			*parameter(&p) = size
			measured, err := matched(ctx, c, p)
			if err != nil {
				return nil, err
			}
			for _, m := range measured.only(Writes, P99) {
				values[m.Name] = append(values[m.Name], m.Value)
				m.Name = At(m.Name, size)
				result = append(result, m)
			}
			if size == largest {
				result = append(result, measured.only(Writes, P99, Lost)...)
			}
		}
		for _, name := range []string{Writes, P99} {
			result = append(result, ratioOf(Growth(name), values[name]))
		}
		return result, nil
	}
}

func ratioOf(name string, values []float64) Metric {
	return Metric{Name: name, Unit: "×", Value: slices.Max(values) / slices.Min(values)}
}

// matched measures one size: the rate at full speed, and then the latency at p.Rate, for at
// most ten seconds. The p99 is then that of a hundred writes: that of the thirty of three seconds
// varied as much between rounds of one size as the goal allows between sizes.
func matched(ctx context.Context, c Contender, p Params) (Result, error) {
	return run(ctx, c, c.Store, func(ctx context.Context, s Store) (Result, error) {
		rev, err := fill(ctx, s, p.Objects, p.grouped())
		if err != nil {
			return nil, err
		}
		fast, slow := p, p
		fast.Rate, slow.Events = 0, min(10*p.Rate, p.Events)
		object := p.grouped()
		saturated, err := watchGroups(ctx, s, fast, rev, object)
		if err != nil {
			return nil, err
		}
		// The writes at full speed leave garbage. A collection that they began would be in the
		// latencies of large states, where it takes long, and not in those of small ones.
		runtime.GC()
		// Other objects of the same groups: one that the first run left as it is written
		// now would not change, and there would be no event.
		other := func(i int) Object { return object(i + p.groups()) }
		paced, err := watchGroups(ctx, s, slow, 0, other)
		if err != nil {
			return nil, err
		}
		return append(saturated.only(Writes, Lost), paced.only(P99)...), nil
	})
}

// groups returns the number of groups of watchers.
func (p Params) groups() int { return max(1, p.Watchers/matching) }

// grouped returns a function that makes objects, the i-th on the node of the group i
// modulo the number of groups.
func (p Params) grouped() func(i int) Object {
	object, groups := objects(p.Objects), p.groups()
	return func(i int) Object {
		o := object(i)
		o.Node = nodeName(i % groups)
		return o
	}
}

// watchGroups measures writes of objects while each group of watchers watches its node from rev on,
// and then stops the watchers.
func watchGroups(ctx context.Context, s Store, p Params, rev uint64, object func(i int) Object) (Result, error) {
	groups := p.groups()
	crowd := newShares(p, groups, newWriter(p, object))
	defer crowd.stop()
	selection := func(i int) Selection { return Selection{Node: nodeName(i % groups)} }
	if err := crowd.open(watching(ctx, s, rev, selection)); err != nil {
		return nil, err
	}
	return crowd.writes(ctx, s)
}

// matchFloor routes the writes of the largest size by a map with a handler for each
// group.
func matchFloor(ctx context.Context, p Params) (Result, error) {
	p.Watchers, p.Objects, p.Rate = p.groups(), p.groups(), 0
	return routeFloor(ctx, p)
}
