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

// cacheUser uses one object cache of a group: it acquires references, reads them and
// replaces some. Its references belong to one goroutine at a time.
type cacheUser struct {
	run   *run
	group *callers
	spec  *scenario.Cache
	cache *objectcache.Cache[content.Item]
	refs  []*objectcache.Ref[content.Item]
	rand  *rand.Rand
	clock *pace.Schedule
	stale int
}

// startCaches makes the caches, on the engine's host and without references.
func (r *run) startCaches() error {
	for i := range r.plan.Caches {
		spec := &r.plan.Caches[i]
		g := newCallers(r, "caches", spec.Name, spec.Count)
		for part := range spec.Count {
			if err := r.startCache(g, spec, part); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *run) startCache(g *callers, spec *scenario.Cache, part int) error {
	cfg := objectcache.Config[content.Item]{Source: r.engine.Source(), Host: r.host, Name: spec.Name, MaxIdle: spec.Idle, OnError: r.failed.engine}
	cfg.Backoff.Initial, cfg.Backoff.Max = r.plan.Engine.Backoff, r.plan.Engine.BackoffMax
	cache, err := objectcache.New(cfg)
	if err != nil {
		return err
	}
	chance := rand.New(rand.NewPCG(r.plan.Seed, uint64(len(r.cacheUsers))+20_000_000))
	share := float64(part) / float64(spec.Count)
	r.cacheUsers = append(r.cacheUsers, &cacheUser{
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

// fillCaches acquires all references and waits until they have their objects.
func (r *run) fillCaches(ctx context.Context) error {
	for _, k := range r.cacheUsers {
		for i := range k.refs {
			if err := k.acquire(i); err != nil {
				return fmt.Errorf("acquiring the first references: %w", err)
			}
		}
	}
	for _, k := range r.cacheUsers {
		for _, ref := range k.refs {
			if _, err := ref.Get(ctx); err != nil && ctx.Err() == nil {
				return fmt.Errorf("reading the first references: %w", err)
			}
		}
	}
	return nil
}

// acquire replaces a reference by one to a random object.
func (k *cacheUser) acquire(place int) error {
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

// use reads references on schedule, until the load is over.
func (k *cacheUser) use(ctx context.Context) {
	if len(k.refs) > 0 {
		k.group.callOnSchedule(ctx, k.clock, 0, k.run.plan.Duration, k.one)
	}
}

// one reads a reference.
func (k *cacheUser) one(ctx context.Context, _ int64) error {
	place := k.rand.IntN(len(k.refs))
	if k.rand.Float64() < k.spec.Churn {
		if err := k.acquire(place); err != nil {
			return err
		}
	}
	_, err := k.refs[place].Get(ctx)
	if errors.Is(err, engine.ErrNotFound) {
		return nil // also a valid result
	}
	return err
}

// settleCaches starts goroutines in settling that wait until every reference has the newest
// state or ctx is done, and count those that do not have it.
func (r *run) settleCaches(ctx context.Context, settling *sync.WaitGroup) {
	if len(r.cacheUsers) == 0 {
		return
	}
	newest := r.ledger.NewestByKey()
	for _, k := range r.cacheUsers {
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

// current waits until a reference has the last write or ctx is done, and reports whether it
// has.
func (k *cacheUser) current(ctx context.Context, ref *objectcache.Ref[content.Item], want judge.Entry) bool {
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

// isNewest reports whether a reference returned the last write; the zero Entry means
// that there was none.
func isNewest(o *engine.Object[content.Item], err error, want judge.Entry) bool {
	if want.Key == "" || want.Deleted {
		return errors.Is(err, engine.ErrNotFound)
	}
	return err == nil && o.Revision == want.Revision
}

// closeCaches closes the caches.
func (r *run) closeCaches() (err error) {
	for _, k := range r.cacheUsers {
		err = errors.Join(err, k.cache.Close())
	}
	return err
}

// stale returns how many references, and handlers of informers, did not have the
// newest state.
func (r *run) stale() (n int) {
	for _, k := range r.cacheUsers {
		n += k.stale
	}
	for _, g := range r.informerGroups {
		n += g.staleHandlers()
	}
	return n
}
