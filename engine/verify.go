package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/fnv"
	"iter"

	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/actors/watchcache"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/tree"
	"github.com/watchmill/watchmill/store/window"
)

// InconsistencyError says that cache and backend differ at the same revision. It is an
// [ErrInconsistent].
type InconsistencyError struct {
	// Revision is that of both states.
	Revision Revision
	// Key is the first key in which they differ.
	Key string
	// Cache and Backend are the digests of both.
	Cache, Backend Digest
}

func (e *InconsistencyError) Error() string {
	return fmt.Sprintf("%v at revision %d, first in %q: cache has %v, backend %v", ErrInconsistent, e.Revision, e.Key, e.Cache, e.Backend)
}

// Is makes errors.Is(err, ErrInconsistent) true.
func (e *InconsistencyError) Is(target error) bool { return target == ErrInconsistent }

// Digest sums up a state: equal states have equal digests, on every machine.
type Digest struct {
	// Objects is how many there are.
	Objects int
	// Hash is the 64-bit FNV-1a of key, revision and Created of each object, in
	// key order.
	Hash uint64
}

// String returns the number of objects and the hash in hexadecimal, for logs.
func (d Digest) String() string { return fmt.Sprintf("%d objects (%016x)", d.Objects, d.Hash) }

// Verify compares the cache with the backend, both at the cache's revision. It reads
// all objects from the backend, a page at a time, without blocking writers and other
// readers.
//
// If they differ, by an error of the backend, the network, or the engine, the cache
// relists: until then new watches wait, and [Latest] and [Exactly] reads wait or go to
// the backend. Running watches get the correction as events, or end with [ErrExpired].
// From then on [Exactly] reads of revisions before the list's go to the backend, and watches
// cannot start after them, since the cache was wrong for an unknown time.
//
// Errors: [*InconsistencyError]; [ErrNotReady] if the cache is not ready, or if OnPool handlers
// block all workers of the host for [Config].FreshnessTimeout; [ErrExpired] if the backend
// compacts faster than can be read; [ErrEngineClosed], ctx's cause, or the backend's error.
// Without a cache it returns nil.
func (e *Engine[T]) Verify(ctx context.Context) error { return e.core.verify(ctx) }

func (e *core) verify(ctx context.Context) error {
	if err := e.alive(); err != nil {
		return err
	}
	if !e.cfg.cached() {
		return nil
	}
	if err := e.fresh(ctx, 0); err != nil {
		return err
	}
	err := e.compare(ctx)
	if !errors.Is(err, ErrInconsistent) {
		return err
	}
	reply := make(chan error, 1)
	e.parts.cache.Distrust(watchcache.Distrust{Cause: err, Reply: reply})
	return errors.Join(err, e.translate(e.host.replyWithin(ctx, e.cfg.freshnessTimeout, reply)))
}

// compareAttempts is how often a comparison starts over because the revision
// was compacted while it was read.
const compareAttempts = 3

// compare reads both states. It waits only for the backend.
func (e *core) compare(ctx context.Context) (err error) {
	for range compareAttempts {
		if err = e.compareAt(ctx, e.published.Load()); !errors.Is(err, ErrExpired) {
			break
		}
	}
	if err == nil || errors.Is(err, ErrInconsistent) {
		e.counts.verified.Add(1)
	}
	if errors.Is(err, ErrInconsistent) {
		e.counts.mismatches.Add(1)
	}
	return err
}

// compareAt reads the backend at the snapshot's revision.
func (e *core) compareAt(ctx context.Context, snap *window.Snapshot) error {
	c := newComparison(snap.State())
	defer c.stop()
	opts := backend.ListOptions{Revision: snap.Revision, Limit: reflector.DefaultPageSize}
	for {
		page, err := e.storage.List(ctx, opts)
		if err != nil {
			return e.translateStorage(err)
		}
		for _, o := range page.Items {
			c.backendHas(o)
		}
		if page.Continue == "" {
			return c.verdict(snap.Revision)
		}
		opts.Continue, opts.Revision = page.Continue, 0
	}
}

// comparison iterates over both states in parallel.
type comparison struct {
	next func() (*store.Object, bool)
	stop func()
	// ahead is the next object of the cache; nil if there is none.
	ahead          *store.Object
	cache, backend digester
	differs        bool
	first          string
}

func newComparison(cached *tree.View) *comparison {
	c := &comparison{cache: newDigester(), backend: newDigester()}
	c.next, c.stop = iter.Pull(cached.All("", ""))
	c.ahead, _ = c.next()
	return c
}

// backendHas compares the backend's next object with the cache's.
func (c *comparison) backendHas(o *store.Object) {
	c.backend.add(o.Key, o.Revision, o.Created)
	for c.ahead != nil && c.ahead.Key < o.Key {
		c.note(c.ahead.Key)
		c.step()
	}
	if c.ahead == nil || c.ahead.Key > o.Key {
		c.note(o.Key)
		return
	}
	if c.ahead.Revision != o.Revision || c.ahead.Created != o.Created {
		c.note(o.Key)
	}
	c.step()
}

// step goes to the cache's next object.
func (c *comparison) step() {
	c.cache.add(c.ahead.Key, c.ahead.Revision, c.ahead.Created)
	c.ahead, _ = c.next()
}

func (c *comparison) note(key string) {
	if !c.differs {
		c.differs, c.first = true, key
	}
}

// verdict ends the comparison and returns its result.
func (c *comparison) verdict(at Revision) error {
	for c.ahead != nil {
		c.note(c.ahead.Key)
		c.step()
	}
	if !c.differs {
		return nil
	}
	return &InconsistencyError{Revision: at, Key: c.first, Cache: c.cache.digest(), Backend: c.backend.digest()}
}

// digester makes a Digest.
type digester struct {
	objects int
	hash    hash.Hash64
	number  [8]byte
}

func newDigester() digester { return digester{hash: fnv.New64a()} }

func (d *digester) add(key string, revisions ...Revision) {
	d.objects++
	_, _ = d.hash.Write([]byte(key)) // a hash returns no error
	for _, rev := range revisions {
		_, _ = d.hash.Write(binary.BigEndian.AppendUint64(d.number[:0], uint64(rev)))
	}
}

func (d *digester) digest() Digest { return Digest{Objects: d.objects, Hash: d.hash.Sum64()} }
