package load

import (
	"context"
	"errors"
	"time"

	"github.com/watchmill/watchmill/engine/objectcache"
	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/pace"
)

const (
	// objectCaches is how many the holders share: so that no holder's references
	// are all that a cache has, nor all there is in a single cache.
	objectCaches = 2
	// readEvery is the time between two rounds of a holder through all that it
	// has: often enough to see much of a history, and little work.
	readEvery = 100 * time.Millisecond
	// settleEvery is the same once everything is written, and settleWithin how
	// long that may take to arrive. Nothing says when it has: an object cache
	// knows single objects, and no revision that all of them have reached.
	settleEvery  = 5 * time.Millisecond
	settleWithin = 30 * time.Second
)

// openHolders makes the object caches and the holders, each with its references.
func (r *run) openHolders() error {
	h := r.history
	for range objectCaches {
		cache, err := objectcache.New(objectcache.Config[content.Item]{
			Source: r.engine.Source(), Host: r.host, Name: "replay", MaxIdle: objectcache.NeverIdle, OnError: r.failed.engine,
		})
		if err != nil {
			return err
		}
		h.caches = append(h.caches, cache)
	}
	keys := r.selectedKeys()
	for number := range h.Watchers {
		holder := &holder{
			outcome: outcome{number: number, state: objects{}},
			run:     r, cache: h.caches[number%len(h.caches)], keys: keys,
			breaks: newBreaks(h.Seed, uint64(number), h.Breaks),
		}
		if err := holder.acquire(); err != nil {
			return err
		}
		h.others = append(h.others, holder)
	}
	return nil
}

// closeOthers ends what the watchers of a history share.
func (r *run) closeOthers() (err error) {
	if r.history == nil {
		return nil
	}
	for _, cache := range r.history.caches {
		err = errors.Join(err, cache.Close())
	}
	for _, mirror := range r.history.informers {
		err = errors.Join(err, mirror.Close())
	}
	return err
}

// selectedKeys returns the keys of all objects that the history names and the
// watchers select, in the order in which they come up.
func (r *run) selectedKeys() (keys []string) {
	seen := map[string]bool{}
	for i := range r.history.Changes {
		key := r.history.Changes[i].Key
		if seen[key] {
			continue
		}
		seen[key] = true
		if r.selects(key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// holder is a watcher that has a reference to each object. It reads them in
// rounds: what it sees is the newest state of each, not every event.
type holder struct {
	outcome
	run    *run
	cache  *objectcache.Cache[content.Item]
	breaks breaks
	keys   []string
	refs   []*objectcache.Ref[content.Item]
}

func (h *holder) acquire() error {
	for _, key := range h.keys {
		ref, err := h.cache.Acquire(key)
		if err != nil {
			return err
		}
		h.refs = append(h.refs, ref)
	}
	return nil
}

func (h *holder) release() {
	for _, ref := range h.refs {
		ref.Release()
	}
	h.refs = h.refs[:0]
}

func (h *holder) consume(ctx, written context.Context) {
	defer h.release()
	err := h.follow(ctx, written)
	if err == nil {
		err = h.settle(ctx)
	}
	if err != nil && ctx.Err() == nil {
		h.lost = err
	}
}

// follow reads while there are writes. At a break it gives its references back
// and takes new ones.
func (h *holder) follow(ctx, written context.Context) error {
	for {
		if err := h.read(ctx); err != nil {
			return err
		}
		over := pace.Sleep(written, readEvery) != nil
		for h.breaks.due(float64(h.run.history.written.Load()) / float64(len(h.run.history.Changes))) {
			h.release()
			h.resumed++
			if err := h.acquire(); err != nil {
				return err
			}
		}
		if over {
			return nil
		}
	}
}

// settle reads until it has what there is, for as long as that may take.
func (h *holder) settle(ctx context.Context) error {
	for end := time.Now().Add(settleWithin); ; {
		if err := h.read(ctx); err != nil {
			return err
		}
		if difference(h.state, h.run.history.truth) == "" || time.Now().After(end) {
			return nil // compare says what is missing
		}
		if err := pace.Sleep(ctx, settleEvery); err != nil {
			return err
		}
	}
}

// read reads all objects once.
func (h *holder) read(ctx context.Context) error {
	for _, ref := range h.refs {
		o, err := ref.Get(ctx)
		if err != nil && !errors.Is(err, objectcache.ErrNotFound) {
			return err
		}
		h.see(ref.Key(), o)
	}
	return nil
}

// see makes what was read part of the state; nil means that there is no object.
// An object does not become an older one.
func (h *holder) see(key string, o item) {
	had := h.state[key]
	switch {
	case o == nil && had != nil:
		delete(h.state, key)
	case o == nil || o == had:
		return
	default:
		h.state[key] = o
		if had != nil && o.Revision <= had.Revision {
			h.misfits++
		}
	}
	h.delivered.Add(1)
}
