package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/objectcache"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/pace"
	"github.com/watchmill/watchmill/sim/scenario"
)

// keeper is the user of one object cache of a group: it holds references, reads
// them and exchanges some. Its references belong to one goroutine at a time.
type keeper struct {
	run   *run
	group *callers
	spec  *scenario.Cache
	cache *objectcache.Cache[content.Item]
	refs  []*objectcache.Ref[content.Item]
	rand  *rand.Rand
	clock *pace.Schedule
	stale int
}

// startKeepers makes the caches, empty, on the engine's host and over the engine.
func (r *run) startKeepers() error {
	for i := range r.plan.Caches {
		spec := &r.plan.Caches[i]
		g := newCallers(r, "caches", spec.Name, spec.Count)
		for part := range spec.Count {
			if err := r.startKeeper(g, spec, part); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *run) startKeeper(g *callers, spec *scenario.Cache, part int) error {
	cfg := objectcache.Config[content.Item]{Source: r.engine.Source(), Host: r.host, Name: spec.Name, MaxIdle: spec.Idle, OnError: r.failed.engine}
	cfg.Backoff.Initial, cfg.Backoff.Max = r.plan.Engine.Backoff, r.plan.Engine.BackoffMax
	cache, err := objectcache.New(cfg)
	if err != nil {
		return err
	}
	chance := rand.New(rand.NewPCG(r.plan.Seed, uint64(len(r.keepers))+20_000_000))
	share := float64(part) / float64(spec.Count)
	r.keepers = append(r.keepers, &keeper{
		run: r, group: g, spec: spec, cache: cache, rand: chance,
		clock: pace.NewSchedule(scenario.Steady, spec.Rate/float64(spec.Count), 0, share, chance),
		refs:  make([]*objectcache.Ref[content.Item], references(spec, part)),
	})
	return nil
}

// references returns how many of the group's references the part'th cache has.
func references(spec *scenario.Cache, part int) int {
	return (spec.References + spec.Count - 1 - part) / spec.Count
}

// fillKeepers acquires all references, and waits until their objects are there.
func (r *run) fillKeepers(ctx context.Context) error {
	for _, k := range r.keepers {
		for i := range k.refs {
			if err := k.acquire(i); err != nil {
				return fmt.Errorf("acquiring the references there are at the start: %w", err)
			}
		}
	}
	for _, k := range r.keepers {
		for _, ref := range k.refs {
			if _, err := ref.Get(ctx); err != nil && ctx.Err() == nil {
				return fmt.Errorf("reading the references there are at the start: %w", err)
			}
		}
	}
	return nil
}

// acquire puts a reference to an object drawn at random in a place.
func (k *keeper) acquire(place int) error {
	if k.refs[place] != nil {
		k.refs[place].Release()
	}
	key := k.run.plan.Objects.Key(k.rand.IntN(k.run.plan.Objects.Count))
	ref, err := k.cache.Acquire(key)
	if err == nil {
		k.refs[place] = ref
	}
	return err
}

// keep reads references when they are due, until the load is over.
func (k *keeper) keep(ctx context.Context) {
	if len(k.refs) > 0 {
		k.group.keep(ctx, k.clock, 0, k.run.plan.Duration, k.one)
	}
}

// one reads a reference.
func (k *keeper) one(ctx context.Context, _ int64) error {
	place := k.rand.IntN(len(k.refs))
	if k.rand.Float64() < k.spec.Churn {
		if err := k.acquire(place); err != nil {
			return err
		}
	}
	_, err := k.refs[place].Get(ctx)
	if errors.Is(err, engine.ErrNotFound) {
		return nil // that is an answer too
	}
	return err
}

// settleKeepers waits until every reference has the newest state, or ctx is done,
// and counts those that have not. Newest is the last write of each key.
func (r *run) settleKeepers(ctx context.Context, settling *sync.WaitGroup) {
	if len(r.keepers) == 0 {
		return
	}
	newest := r.ledger.NewestByKey()
	for _, k := range r.keepers {
		r.settling.Add(1)
		settling.Go(func() {
			defer r.settling.Add(-1)
			for _, ref := range k.refs {
				if !k.current(ctx, ref, newest[ref.Key()]) {
					k.stale++
				}
			}
		})
	}
}

// current waits until a reference has a state, and reports whether it came to.
func (k *keeper) current(ctx context.Context, ref *objectcache.Ref[content.Item], want judge.Entry) bool {
	for {
		o, err := ref.Get(ctx)
		if isNewest(o, err, want) {
			return true
		}
		if pace.Sleep(ctx, time.Millisecond) != nil {
			return false
		}
	}
}

// isNewest reports whether what a reference returned is what was written last.
func isNewest(o *engine.Object[content.Item], err error, want judge.Entry) bool {
	if want.Key == "" || want.Deleted {
		return errors.Is(err, engine.ErrNotFound)
	}
	return err == nil && o.Revision == want.Revision
}

// closeKeepers ends the caches.
func (r *run) closeKeepers() (err error) {
	for _, k := range r.keepers {
		err = errors.Join(err, k.cache.Close())
	}
	return err
}

// stale returns how many references, and handlers of informers, did not have the
// newest state.
func (r *run) stale() (n int) {
	for _, k := range r.keepers {
		n += k.stale
	}
	for _, g := range r.mirrors {
		n += g.ignorant()
	}
	return n
}
