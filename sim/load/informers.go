package load

import (
	"context"
	"sync"

	"github.com/watchmill/watchmill/sim/load/internal/informers"
)

// startInformers makes the informers of the plan.
func (r *run) startInformers() error {
	cfg := informers.Config{
		Plan: r.plan, Engine: r.engine, Host: r.host, Stopwatch: r.stopwatch, Closing: r.closing, OnError: r.failed.engine,
		Own: r.own,
	}
	for i := range r.plan.Informers {
		g, err := informers.Start(cfg, &r.plan.Informers[i])
		if err != nil {
			return err
		}
		r.informerGroups = append(r.informerGroups, g)
	}
	return nil
}

// syncInformers waits until the informers have the initial objects.
func (r *run) syncInformers(ctx context.Context) error {
	for _, g := range r.informerGroups {
		if err := g.Sync(ctx); err != nil {
			return err
		}
	}
	return nil
}

// settleInformers starts goroutines in settling that wait until every handler has the newest
// state or ctx is done.
func (r *run) settleInformers(ctx context.Context, settling *sync.WaitGroup) {
	if len(r.informerGroups) == 0 {
		return
	}
	newest := r.ledger.NewestByKey()
	for _, g := range r.informerGroups {
		for _, h := range g.Handlers() {
			r.settling.Add(1)
			settling.Go(func() {
				defer r.settling.Add(-1)
				h.WaitSynced(ctx, newest)
			})
		}
	}
}
