package bench

import "context"

// interest is W5 and W6: each write matches one of thousands of watchers.
func interest() []Workload {
	return []Workload{
		{
			ID: "W5", Text: "5,000 watchers, each of one value of an indexed field",
			Full:  Params{Watchers: 5000, Objects: 5000, Events: 500_000},
			Small: Params{Watchers: 50, Objects: 50, Events: 500},
			Goals: []Goal{atLeast(Writes, 7), mustBeZero(Lost)},
			Run:   watchOneEach(overStorage, ofNode),
			Floor: routeFloor, Able: onStore,
		},
		{
			ID: "W5/stub", Text: "as W5, where both caches are fed by a stub instead of storage",
			Full:  Params{Watchers: 5000, Objects: 5000, Events: 500_000},
			Small: Params{Watchers: 50, Objects: 50, Events: 500},
			Goals: []Goal{atLeast(Writes, 10), mustBeZero(Lost)},
			Run:   watchOneEach(overStub, ofNode),
			Floor: routeFloor, Able: onFed,
		},
		{
			ID: "W6", Text: "5,000 watchers, each with a label selector of its own, not indexed",
			Full:  Params{Watchers: 5000, Objects: 5000, Events: 5000},
			Small: Params{Watchers: 50, Objects: 50, Events: 500},
			Goals: []Goal{atLeast(Writes, 100), mustBeZero(Lost)},
			Run:   watchOneEach(overStorage, ofApp),
			Floor: routeFloor, Able: onStore,
		},
	}
}

// ofNode and ofApp select the i-th object alone.
func ofNode(i int) Selection { return Selection{Node: nodeName(i)} }
func ofApp(i int) Selection  { return Selection{App: appName(i)} }

// watchOneEach returns a run in which the i-th watcher watches selection(i), which must
// match the i-th object alone.
func watchOneEach(open opening[Store], selection func(i int) Selection) runner {
	return on(open, func(ctx context.Context, s Store, p Params) (Result, error) {
		object := objects(p.Objects)
		rev, err := fill(ctx, s, p.Objects, object)
		if err != nil {
			return nil, err
		}
		crowd := newShares(p, p.Objects, newWriter(p, object))
		if err := crowd.open(watching(ctx, s, rev, selection)); err != nil {
			return nil, err
		}
		return crowd.writes(ctx, s)
	})
}
