package clients

import (
	"context"
	"errors"
	"time"

	"github.com/watchmill/watchmill/engine/objectcache"
	"github.com/watchmill/watchmill/sim/load/internal/breaks"
	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/load/internal/states"
	"github.com/watchmill/watchmill/sim/pace"
)

const (
	// objectCaches is how many caches the readers share.
	objectCaches = 2
	// readEvery is the time between two reads of all of a reader's objects: often
	// enough to see much of a history, at little cost.
	readEvery = 100 * time.Millisecond
	// settleEvery is the time between two such reads once everything is written, and
	// settleWithin how long a reader waits for the newest state. The readers poll, since
	// an object cache watches single objects and has no revision that all of them have
	// reached.
	settleEvery  = 5 * time.Millisecond
	settleWithin = 30 * time.Second
)

// References makes the object caches and the readers with their references.
func References(cfg Config) ([]Client, error) {
	var caches []*objectcache.Cache[content.Item]
	for range objectCaches {
		cache, err := objectcache.New(objectcache.Config[content.Item]{
			Source: cfg.Engine.Source(), Host: cfg.Host, Name: "replay", MaxIdle: objectcache.NeverIdle, OnError: cfg.OnError,
		})
		if err != nil {
			return nil, err
		}
		cfg.Own(cache)
		caches = append(caches, cache)
	}
	var all []Client
	keys := cfg.History.Keys()
	for number := range cfg.Count {
		reader := &referenceReader{
			Outcome: Outcome{Number: number, State: states.Objects{}},
			history: cfg.History, cache: caches[number%len(caches)], keys: keys,
			breaks: breaks.New(cfg.Seed, uint64(number), cfg.Breaks),
		}
		if err := reader.acquire(); err != nil {
			return nil, err
		}
		all = append(all, reader)
	}
	return all, nil
}

// referenceReader is a watcher that has a reference to each object. It reads them in
// rounds, so that it sees the newest state of each and not every event.
type referenceReader struct {
	Outcome
	history History
	cache   *objectcache.Cache[content.Item]
	breaks  breaks.Points
	keys    []string
	refs    []*objectcache.Ref[content.Item]
}

func (r *referenceReader) acquire() error {
	for _, key := range r.keys {
		ref, err := r.cache.Acquire(key)
		if err != nil {
			return err
		}
		r.refs = append(r.refs, ref)
	}
	return nil
}

func (r *referenceReader) release() {
	for _, ref := range r.refs {
		ref.Release()
	}
	r.refs = r.refs[:0]
}

func (r *referenceReader) Consume(ctx, written context.Context) {
	defer r.release()
	err := r.follow(ctx, written)
	if err == nil {
		err = r.settle(ctx)
	}
	if err != nil && ctx.Err() == nil {
		r.Lost = err
	}
}

// follow reads until everything is written. At a disconnect it releases its references and
// acquires new ones.
func (r *referenceReader) follow(ctx, written context.Context) error {
	for {
		if err := r.read(ctx); err != nil {
			return err
		}
		over := pace.Sleep(written, readEvery) != nil
		for r.breaks.Due(r.history.Progress()) {
			r.release()
			r.Resumed++
			if err := r.acquire(); err != nil {
				return err
			}
		}
		if over {
			return context.Cause(ctx) // ends written, too
		}
	}
}

// settle reads until the state is the backend's, for at most settleWithin.
func (r *referenceReader) settle(ctx context.Context) error {
	for end := time.Now().Add(settleWithin); ; {
		if err := r.read(ctx); err != nil {
			return err
		}
		if states.Difference(r.State, r.history.Final()) == "" || time.Now().After(end) {
			return nil // the comparison of final states reports what is missing
		}
		if err := pace.Sleep(ctx, settleEvery); err != nil {
			return err
		}
	}
}

// read reads all objects once.
func (r *referenceReader) read(ctx context.Context) error {
	for _, ref := range r.refs {
		o, err := ref.Get(ctx)
		if err != nil && !errors.Is(err, objectcache.ErrNotFound) {
			return err
		}
		r.applyRead(ref.Key(), o)
	}
	return nil
}

// applyRead adds what was read to the state; nil means that there is no object. A change to an
// older revision of an object is a misfit.
func (r *referenceReader) applyRead(key string, o states.Item) {
	had := r.State[key]
	switch {
	case o == nil && had != nil:
		delete(r.State, key)
	case o == nil || o == had:
		return
	default:
		r.State[key] = o
		if had != nil && o.Revision <= had.Revision {
			r.Misfits++
		}
	}
	r.Delivered.Add(1)
}
