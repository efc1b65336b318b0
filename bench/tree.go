package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// levels is the number of servers in the chain of W21: an origin, a replica of it, and a
// replica of that replica.
const levels = 3

// Restart is the metric of the time from the start of an empty replica until it serves the
// newest state.
const Restart = "restart"

// tree is W21: replicas of replicas.
func tree() []Workload {
	return []Workload{{
		ID: "W21", Text: "an origin and two levels of replicas with 10,000 objects, 100 writes/s, 10 watches over HTTP at each level",
		Full:  Params{Watchers: 10, Objects: 10_000, Events: 1000, Rate: 100},
		Small: Params{Watchers: 2, Objects: 20, Events: 40, Rate: 200},
		Goals: []Goal{mustBeZero(Lost)},
		Run:   runTree, Floor: onBare(served(1000, overHTTP)), Able: onlyOurs,
	}}
}

// treeOf is a chain of servers, the origin first, each a replica of the one before.
type treeOf []*wire

func openTree(ctx context.Context) (treeOf, error) {
	var t treeOf
	for len(t) < levels {
		next, err := t.openNext(ctx)
		if err != nil {
			return nil, errors.Join(err, t.Close())
		}
		t = append(t, next)
	}
	return t, nil
}

// openNext opens the origin or, if there is one, a replica of the last server.
func (t treeOf) openNext(ctx context.Context) (*wire, error) {
	open := openServer
	if len(t) > 0 {
		open = func(ctx context.Context) (Server, error) { return openReplica(ctx, t[len(t)-1].addr) }
	}
	server, err := open(ctx)
	if err != nil {
		return nil, err
	}
	return listen(ctx, server, nil)
}

// Close closes the servers, the last replica first.
func (t treeOf) Close() error {
	var errs []error
	for i := range t {
		errs = append(errs, t[len(t)-1-i].Close())
	}
	return errors.Join(errs...)
}

// runTree writes at the origin while watches of each level measure latency, and then
// opens another replica at the end.
func runTree(ctx context.Context, c Contender, p Params) (Result, error) {
	return run(ctx, c, openTree, func(ctx context.Context, t treeOf) (Result, error) {
		object := objects(p.Objects)
		rev, err := fill(ctx, t[0], p.Objects, object)
		if err != nil {
			return nil, err
		}
		all := p
		all.Watchers = p.Watchers * len(t)
		crowd := newCrowd(all.Watchers, all.Watchers, newWriter(p, object))
		defer crowd.end()
		err = crowd.open(func(i int, handle func(seq int64)) (Watch, error) {
			level := t[i/p.Watchers]
			if err := level.WaitFor(ctx, rev); err != nil {
				return nil, err
			}
			return level.Watch(ctx, Selection{}, rev, handle)
		})
		if err != nil {
			return nil, err
		}
		took, err := crowd.run(ctx, writerTo(t[0]))
		if err != nil {
			return nil, err
		}
		restart, err := t.restart(ctx)
		return append(append(crowd.result(took), crowd.byLevel(p.Watchers)...), micros(Restart, restart)), err
	})
}

// byLevel returns the latency of each level, which has n watches.
func (c *crowd) byLevel(n int) Result {
	var result Result
	for level := 0; level*n < len(c.members); level++ {
		some := crowd{members: c.members[level*n : (level+1)*n]}
		for _, m := range some.latency().metrics() {
			m.Name = fmt.Sprintf("%s of level %d", m.Name, level)
			result = append(result, m)
		}
	}
	return result
}

// restart opens another replica of the last server, and returns how long that took until it
// served the newest state.
func (t treeOf) restart(ctx context.Context) (time.Duration, error) {
	begin := time.Now()
	replica, err := t.openNext(ctx)
	if err != nil {
		return 0, err
	}
	took := time.Since(begin)
	return took, replica.Close()
}
