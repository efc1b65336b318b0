package controller_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/watchmill/watchmill/controller"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/store/cache"
)

// Pool wants a number of workers, each of which names its pool.
type Pool struct {
	Name string
	Want int
}

type Worker struct{ Name, Pool string }

// pools makes the workers of each pool, and removes those of a pool that is gone.
type pools struct {
	workers *engine.Engine[Worker]
	owned   *informer.SharedInformer[Worker]
}

// reconcile makes workers under names that follow from the pool, so that one that the informer does not have yet
// is not made twice.
func (p *pools) reconcile(ctx context.Context, key string, pool *engine.Object[Pool]) (controller.Result, error) {
	if pool == nil {
		return controller.Result{}, p.remove(ctx, key)
	}
	for n := range pool.Value.Want {
		_, err := p.workers.Create(ctx, Worker{Name: fmt.Sprint(key, "-", n), Pool: key})
		if err != nil && !errors.Is(err, engine.ErrExists) {
			return controller.Result{}, err
		}
	}
	return controller.Result{}, nil
}

func (p *pools) remove(ctx context.Context, pool string) error {
	workers, err := p.owned.ByIndex("pool", pool)
	for _, w := range workers {
		_, gone := p.workers.Delete(ctx, w.Key, engine.DeleteOptions{})
		if gone != nil && !errors.Is(gone, engine.ErrNotFound) {
			err = errors.Join(err, gone)
		}
	}
	return err
}

// A controller of one kind makes objects of another. A handler of an informer of those has it look at the owner when
// one of them changes.
func Example_owned() {
	ctx := context.Background()
	host, err := engine.NewHost(engine.HostConfig{})
	must(err)
	defer host.Close()
	wanted, err := engine.New(engine.Config[Pool]{Host: host, Key: func(p Pool) string { return p.Name }})
	must(err)
	defer wanted.Close()
	workers, err := engine.New(engine.Config[Worker]{Host: host, Key: func(w Worker) string { return w.Name }})
	must(err)
	defer workers.Close()

	owned, err := informer.New(informer.Config[Worker]{
		Source: workers.Source(), Host: host,
		Indexers: cache.Indexers[Worker]{"pool": func(w Worker) ([]string, error) { return []string{w.Pool}, nil }},
	})
	must(err)
	defer owned.Close()
	must(informer.WaitFor(ctx, owned)) // before that a pool would seem to have no workers
	p := pools{workers: workers, owned: owned}
	c, err := controller.New(controller.Config[Pool]{Source: wanted.Source(), Host: host, Reconcile: p.reconcile})
	must(err)
	defer c.Close()
	_, err = owned.Subscribe(func(n informer.Notification[Worker]) { _ = c.Enqueue(n.Object.Value.Pool) }, informer.HandlerOptions{Name: "owners"})
	must(err)

	web, err := wanted.Create(ctx, Pool{Name: "web", Want: 2})
	must(err)
	must(c.Settle(ctx, web.Revision))
	killed, err := workers.Delete(ctx, "web-0", engine.DeleteOptions{})
	must(err)
	changes, err := workers.Watch(ctx, engine.WatchOptions{From: killed.Revision})
	must(err)
	events, err := changes.Next(ctx)
	must(err)
	fmt.Println(events[0].Type, events[0].Key())

	must(owned.WaitForRevision(ctx, events[0].Revision))
	gone, err := wanted.Delete(ctx, "web", engine.DeleteOptions{})
	must(err)
	must(c.Settle(ctx, gone.Revision))
	left, err := workers.List(ctx, engine.ListOptions{})
	must(err)
	fmt.Println(len(left.Items), "workers are left")
	// Output:
	// ADDED web-0
	// 0 workers are left
}
