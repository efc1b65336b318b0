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
	r.own(cache)
	random := rand.New(rand.NewPCG(r.plan.Seed, uint64(len(r.cacheUsers))+20_000_000))
	share := float64(part) / float64(spec.Count)
	r.cacheUsers = append(r.cacheUsers, &cacheUser{
		run: r, group: g, spec: spec, cache: cache, rand: random,
		clock: pace.NewSchedule(scenario.Steady, spec.Rate/float64(spec.Count), 0, share, random),
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
	for _, u := range r.cacheUsers {
		for i := range u.refs {
			if err := u.acquire(i); err != nil {
				return fmt.Errorf("acquiring the first references: %w", err)
			}
		}
	}
	for _, u := range r.cacheUsers {
		for _, ref := range u.refs {
			if _, err := ref.Get(ctx); err != nil && ctx.Err() == nil {
				return fmt.Errorf("reading the first references: %w", err)
			}
		}
	}
	return nil
}

// acquire replaces a reference by one to a random object.
func (u *cacheUser) acquire(place int) error {
	if u.refs[place] != nil {
		u.refs[place].Release()
	}
	key := u.run.plan.Objects.Key(u.rand.IntN(u.run.plan.Objects.Count))
	ref, err := u.cache.Acquire(key)
	if err == nil {
		u.refs[place] = ref
	}
	return err
}

// use reads references on schedule, until the load is over.
func (u *cacheUser) use(ctx context.Context) {
	if len(u.refs) > 0 {
		u.group.callOnSchedule(ctx, u.clock, 0, u.run.plan.Duration, u.readOne)
	}
}

// readOne reads a reference, and now and then replaces it first.
func (u *cacheUser) readOne(ctx context.Context, _ int64) error {
	place := u.rand.IntN(len(u.refs))
	if u.rand.Float64() < u.spec.Churn {
		if err := u.acquire(place); err != nil {
			return err
		}
	}
	_, err := u.refs[place].Get(ctx)
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
	for _, u := range r.cacheUsers {
		r.settling.Add(1)
		settling.Go(func() {
			defer r.settling.Add(-1)
			for _, ref := range u.refs {
				if !u.current(ctx, ref, newest[ref.Key()]) {
					u.stale++
				}
			}
		})
	}
}

// current waits until a reference has the last write or ctx is done, and reports whether it
// has.
func (u *cacheUser) current(ctx context.Context, ref *objectcache.Ref[content.Item], want judge.Entry) bool {
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

// stale returns how many references, and handlers of informers, did not have the
// newest state.
func (r *run) stale() (n int) {
	for _, g := range r.callers {
		n += r.staleReferences(g)
	}
	for _, g := range r.informerGroups {
		n += g.Stale()
	}
	return n
}

// staleReferences returns how many of the group's references did not have the newest state.
func (r *run) staleReferences(g *callers) (n int) {
	for _, u := range r.cacheUsers {
		if u.group == g {
			n += u.stale
		}
	}
	return n
}
