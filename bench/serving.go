package bench

import (
	"context"
	"runtime"
	"slices"
	"time"
)

// The metrics of serving.
const (
	// CPU is the processors' time for one delivery, of server and client together if they are
	// in one process; see [ClientCPU].
	CPU = "cpu/delivery"
	// Allocated is the memory that one list allocates, in server and client together.
	Allocated = "allocated/list"
)

// serving is W16, W17 and W20: reading over HTTP, on loopback.
func serving() []Workload {
	return slices.Concat(servedWatches(), idleWatches(), []Workload{{
		ID: "W20", Text: "list 10,000 of 10,000 objects over HTTP",
		Full:  Params{Objects: 10_000, Events: 30},
		Small: Params{Objects: 100, Events: 10},
		Goals: []Goal{atLeast(Reads, 5), atMost(Allocated, 0.2)},
		Run:   on(overHTTP, listServed), Floor: onBare(on(overHTTP, listServed)), Able: onServer,
	}})
}

// servedWatches is W16.
func servedWatches() []Workload {
	return []Workload{
		{
			ID: "W16/saturated", Text: "1,000 watches over HTTP/1.1, one writer as fast as it goes",
			Full:  Params{Watchers: 1000, Objects: 100, Events: 2000},
			Small: Params{Watchers: 10, Objects: 10, Events: 200},
			Goals: []Goal{atLeast(Deliveries, 5), atMost(CPU, 0.25), mustBeZero(Lost)},
			Run:   served(1, overHTTP), Floor: onBare(served(1, overHTTP)), Able: onServer,
		},
		{
			ID: "W16/paced", Text: "1,000 watches over HTTP/1.1, 200 writes/s",
			Full:  Params{Watchers: 1000, Objects: 100, Events: 1000, Rate: 200},
			Small: Params{Watchers: 10, Objects: 10, Events: 50, Rate: 200},
			Goals: []Goal{atMost(P99, 1.0/3), mustBeZero(Lost)},
			Run:   served(1000, overHTTP), Floor: onBare(served(1000, overHTTP)), Able: onServer,
		},
		{
			ID: "W16/light", Text: "1,000 watches over HTTP/1.1, 20 writes/s",
			Full:  Params{Watchers: 1000, Objects: 100, Events: 200, Rate: 20},
			Small: Params{Watchers: 10, Objects: 10, Events: 50, Rate: 200},
			Goals: []Goal{mustBeZero(Lost)},
			Run:   served(1000, overHTTP), Floor: onBare(served(1000, overHTTP)), Able: onServer,
		},
		{
			ID: "W16/tls", Text: "1,000 watches over TLS and HTTP/2, 100 to a connection, one writer as fast as it goes",
			Full:  Params{Watchers: 1000, Objects: 100, Events: 2000},
			Small: Params{Watchers: 120, Objects: 10, Events: 100},
			Goals: []Goal{atLeast(Deliveries, 5), atMost(CPU, 0.25), mustBeZero(Lost)},
			Run:   served(1, overTLS), Floor: onBare(served(1, overTLS)), Able: onServer,
		},
	}
}

// idleWatches is W17.
func idleWatches() []Workload {
	return []Workload{
		{
			ID: "W17/http1", Text: "5,000 idle watches over HTTP/1.1",
			Full:  Params{Watchers: 5000},
			Small: Params{Watchers: 50},
			Goals: []Goal{atMost(BytesPerWatcher, 1.0/3)},
			Run:   idleServed((*wire).idleOne, overHTTP), Floor: onBare(idleServed((*wire).idleOne, overHTTP)), Able: onServer, Apart: true,
		},
		{
			ID: "W17/http2", Text: "10,000 idle watches over HTTP/2, 100 to a connection",
			Full:  Params{Watchers: 10_000},
			Small: Params{Watchers: 120},
			Goals: []Goal{atMost(BytesPerWatcher, 1.0/3)},
			Run:   idleServed((*wire).idleTwo, overHTTP), Floor: onBare(idleServed((*wire).idleTwo, overHTTP)), Able: onServer, Apart: true,
		},
		{
			ID: "W17/tls", Text: "10,000 idle watches over TLS and HTTP/2, 100 to a connection",
			Full:  Params{Watchers: 10_000},
			Small: Params{Watchers: 120},
			Goals: []Goal{atMost(BytesPerWatcher, 1.0/3)},
			Run:   idleServed((*wire).idleTwo, overTLS), Floor: onBare(idleServed((*wire).idleTwo, overTLS)), Able: onServer, Apart: true,
		},
	}
}

// served returns a run that writes while p.Watchers watch over HTTP, timed of which measure
// latency.
func served(timed int, over opening[*wire]) runner {
	return on(over, func(ctx context.Context, s *wire, p Params) (Result, error) {
		object := objects(p.Objects)
		rev, err := fill(ctx, s, p.Objects, object)
		if err != nil {
			return nil, err
		}
		crowd := newCrowd(p.Watchers, min(timed, p.Watchers), newWriter(p, object))
		defer crowd.end()
		if err := crowd.open(watching(ctx, s.watches(), rev, everything)); err != nil {
			return nil, err
		}
		before := processorTime()
		took, err := crowd.run(ctx, writerTo(s))
		if err != nil {
			return nil, err
		}
		used := processorTime() - before
		return append(crowd.result(took), crowd.cost(used)), nil
	})
}

// cost returns the processors' time for one delivery.
func (c *crowd) cost(used time.Duration) Metric {
	n, _, _ := c.delivered()
	return perDelivery(CPU, used, n)
}

// perDelivery returns the processors' time for one of n deliveries.
func perDelivery(name string, used time.Duration, n int64) Metric {
	return Metric{Name: name, Unit: Microseconds, Value: float64(used.Microseconds()) / float64(max(n, 1))}
}

// end stops the watches that were opened and waits until their handlers have
// returned.
func (c *crowd) end() {
	c.stop()
	for i := range c.members {
		if w := c.members[i].watch; w != nil {
			<-w.Done()
		}
	}
}

// idleServed returns a run that measures watches without events.
func idleServed(open func(s *wire, ctx context.Context, from uint64, n int) error, over opening[*wire]) runner {
	return on(over, func(ctx context.Context, s *wire, p Params) (Result, error) {
		rev, err := fill(ctx, s, 1, objects(1))
		if err != nil {
			return nil, err
		}
		before := measureFootprint()
		if err := open(s, ctx, rev, p.Watchers); err != nil {
			return nil, err
		}
		return measureFootprint().per(before, p.Watchers), nil
	})
}

// listServed lists everything, one list after the other.
func listServed(ctx context.Context, s *wire, p Params) (Result, error) {
	if _, err := fill(ctx, s, p.Objects, objects(p.Objects)); err != nil {
		return nil, err
	}
	if err := list(ctx, s, Selection{}, p.Objects); err != nil { // the connection
		return nil, err
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	result, err := timed(Reads, p.Events, func(int) error { return list(ctx, s, Selection{}, p.Objects) })
	runtime.ReadMemStats(&after)
	each := float64(after.TotalAlloc-before.TotalAlloc) / float64(p.Events)
	return append(result, Metric{Name: Allocated, Unit: " B", Value: each}), err
}
