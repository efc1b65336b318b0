package bench

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Current is the metric of the time until all watchers are up to date.
const Current = "all current"

// openers is how many clients open watches at the same moment.
const openers = 8

// reconnect is W11: all watchers reconnect after an outage.
func reconnect() []Workload {
	return []Workload{{
		ID: "W11", Text: "10,000 watchers reconnect at once, each 1,000 events behind",
		Full:  Params{Watchers: 10_000, Objects: 100, Events: 1000},
		Small: Params{Watchers: 50, Objects: 10, Events: 100},
		Goals: []Goal{atMost(Current, 0.2), mustBeZero(Lost)},
		Run:   on(overStorage, reconnectAll), Floor: callFloor, Able: onStore,
	}}
}

func reconnectAll(ctx context.Context, s Store, p Params) (Result, error) {
	object := objects(p.Objects)
	from, err := fill(ctx, s, p.Objects, object)
	if err != nil {
		return nil, err
	}
	w := newWriter(p, object)
	var newest uint64
	err = w.run(ctx, func(ctx context.Context, o Object) (err error) {
		newest, err = s.Write(ctx, o)
		return err
	})
	if err == nil {
		err = s.WaitFor(ctx, newest)
	}
	if err != nil {
		return nil, err
	}
	return newCrowd(p.Watchers, 0, w).catchUp(ctx, s, from)
}

// catchUp opens all watches at revision from and waits until each has received all later
// writes.
func (c *crowd) catchUp(ctx context.Context, s Store, from uint64) (Result, error) {
	currentAt := make([]time.Duration, len(c.members))
	begin := time.Now()
	err := concurrently(openers, len(c.members), func(i int) error {
		m := &c.members[i]
		var err error
		m.watch, err = s.Watch(ctx, Selection{}, from, func(int64) {
			if m.count == m.want-1 {
				currentAt[i] = time.Since(begin)
			}
			m.countEvent()
		})
		return err
	})
	if err == nil {
		err = c.await(ctx)
	}
	took := time.Since(begin)
	if err == nil {
		err = c.repeated()
	}
	if err != nil {
		return nil, err
	}
	l := newLatency()
	for _, at := range currentAt {
		l.add(int64(at))
	}
	delivered, lost, closed := c.delivered()
	return Result{micros(Current, took), rate(Deliveries, delivered, took), micros(P50, l.at(50)), micros(P99, l.at(99)),
		percent(Lost, lost, delivered+lost), count(LostWatches, closed)}, nil
}

// concurrently calls do with each number below n, on that many goroutines, and
// returns the errors.
func concurrently(goroutines, n int, do func(i int) error) error {
	var all sync.WaitGroup
	failures := make([]error, goroutines)
	for g := range goroutines {
		all.Go(func() {
			for i := g; i < n && failures[g] == nil; i += goroutines {
				failures[g] = do(i)
			}
		})
	}
	all.Wait()
	return errors.Join(failures...)
}
