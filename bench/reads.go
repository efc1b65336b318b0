package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Reads is the metric of lists and gets.
const Reads = "reads"

// reads is W9 and W10: lists and gets from the cache.
func reads() []Workload {
	return []Workload{
		{
			ID: "W9/list", Text: "list 10,000 of 10,000 objects",
			Full:  Params{Objects: 10_000, Events: 500},
			Small: Params{Objects: 100, Events: 20},
			Goals: []Goal{atLeast(Reads, 40)},
			Run:   reading(listAll), Floor: copyFloor, Able: onStore,
		},
		{
			ID: "W9/index", Text: "list 100 of 100,000 objects by an index",
			Full:  Params{Objects: 100_000, Events: 20_000, Watchers: 100},
			Small: Params{Objects: 500, Events: 50, Watchers: 5},
			Goals: []Goal{atLeast(Reads, 5)},
			Run:   reading(listNode), Floor: indexFloor, Able: onStore,
		},
		{
			ID: "W9/get", Text: "get one of 10,000 objects",
			Full:  Params{Objects: 10_000, Events: 200_000},
			Small: Params{Objects: 100, Events: 500},
			Goals: []Goal{atLeast(Reads, 5)},
			Run:   reading(getOne), Floor: getFloor, Able: onStore,
		},
		{
			ID: "W10", Text: "4 readers list 100,000 objects continuously, one writes 1,000/s; write to watcher",
			Full:  Params{Watchers: 1, Objects: 100_000, Events: 5000, Rate: 1000, Readers: 4},
			Small: Params{Watchers: 1, Objects: 500, Events: 100, Rate: 1000, Readers: 2},
			Goals: []Goal{atMost(P50, 0.01), atMost(P99, 0.1), mustBeZero(Lost)},
			Run:   on(overStorage, readUnderWrites), Floor: readUnderWritesFloor, Able: onStore,
		},
	}
}

// reader makes the i-th read.
type reader func(ctx context.Context, s Store, i int) error

// reading returns a run that fills a store and measures p.Events reads.
func reading(readerFor func(p Params) reader) runner {
	return on(overStorage, func(ctx context.Context, s Store, p Params) (Result, error) {
		if _, err := fill(ctx, s, p.Objects, p.onNodes()); err != nil {
			return nil, err
		}
		read := readerFor(p)
		return timed(Reads, p.Events, func(i int) error { return read(ctx, s, i) })
	})
}

// onNodes returns a function that makes the objects for reads: p.Watchers on each node, if
// that is set.
func (p Params) onNodes() func(i int) Object {
	object := objects(p.Objects)
	return func(i int) Object {
		o := object(i)
		o.Node = nodeName(i / max(p.Watchers, 1))
		return o
	}
}

func listAll(p Params) reader {
	return func(ctx context.Context, s Store, _ int) error { return list(ctx, s, Selection{}, p.Objects) }
}

func listNode(p Params) reader {
	nodes := make([]Selection, p.Objects/p.Watchers)
	for i := range nodes {
		nodes[i].Node = nodeName(i)
	}
	return func(ctx context.Context, s Store, i int) error { return list(ctx, s, nodes[i%len(nodes)], p.Watchers) }
}

func getOne(p Params) reader {
	object := objects(p.Objects)
	keys := make([]string, p.Objects)
	for i := range keys {
		keys[i] = object(i).Key()
	}
	return func(ctx context.Context, s Store, i int) error {
		got, err := s.Get(ctx, keys[i%len(keys)])
		if err == nil && got.Name != object(i).Name {
			err = fmt.Errorf("get of %s brought %q", keys[i%len(keys)], got.Name)
		}
		return err
	}
}

func list(ctx context.Context, s Store, what Selection, want int) error {
	got, err := s.List(ctx, what)
	if err == nil && got != want {
		err = fmt.Errorf("list of %+v has %d objects instead of %d", what, got, want)
	}
	return err
}

// readUnderWrites measures the latency of writes while readers list everything.
func readUnderWrites(ctx context.Context, s Store, p Params) (Result, error) {
	object := objects(p.Objects)
	rev, err := fill(ctx, s, p.Objects, object)
	if err != nil {
		return nil, err
	}
	return whileReading(ctx, p.Readers, func(ctx context.Context) error { return list(ctx, s, Selection{}, p.Objects) },
		func() (Result, error) { return watchWrites(ctx, s, p, p.Watchers, rev, object) })
}

// whileReading calls measure while readers read continuously, and adds the rate of the reads to
// its result.
func whileReading(ctx context.Context, readers int, read func(context.Context) error, measure func() (Result, error)) (Result, error) {
	stop := make(chan struct{})
	var all sync.WaitGroup
	var lists atomic.Int64
	failures := make([]error, readers)
	begin := time.Now()
	for i := range readers {
		all.Go(func() { failures[i] = repeat(ctx, stop, read, &lists) })
	}
	result, err := measure()
	took := time.Since(begin)
	close(stop)
	all.Wait()
	return append(result, rate(Reads, lists.Load(), took)), errors.Join(append(failures, err)...)
}

// repeat calls do until stop, and counts the calls.
func repeat(ctx context.Context, stop <-chan struct{}, do func(context.Context) error, times *atomic.Int64) error {
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		if err := do(ctx); err != nil {
			return err
		}
		times.Add(1)
	}
}
