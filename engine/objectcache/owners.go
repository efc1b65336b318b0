package objectcache

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/watchmill/watchmill/engine"
)

// Owners keeps references on behalf of owners, each of which needs a set of
// keys that changes: as a pod needs secrets. Make one with [NewOwners]. All
// methods are safe for concurrent use.
//
// O identifies an owner. If one can be replaced by another of the same name, O
// must tell them apart, by a UID for example: then they may be registered and
// unregistered in any order.
type Owners[O comparable, T any] struct {
	cache cacheCore
	mu    sync.Mutex
	refs  map[O]map[string]refCore
}

// NewOwners returns Owners without any. It is not to be closed: closing the
// cache is enough.
func NewOwners[O comparable, T any](cache *Cache[T]) *Owners[O, T] {
	return &Owners[O, T]{cache: cache.core, refs: make(map[O]map[string]refCore)}
}

// Register says that owner needs these keys and no others. Only what differs
// from the time before is acquired and released; to register the same again
// does nothing. It does not block. After an error everything is as it was.
//
// Errors: as for [Cache.Acquire].
func (o *Owners[O, T]) Register(owner O, keys ...string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.refs[owner]
	now := make(map[string]refCore, len(keys))
	for _, key := range keys {
		if ref := before[key]; ref != nil {
			now[key] = ref
		}
		if now[key] != nil {
			continue
		}
		ref, err := o.cache.acquire(key)
		if err != nil {
			releaseAll(now, before)
			return fmt.Errorf("register %v: %w", owner, err)
		}
		now[key] = ref
	}
	releaseAll(before, now)
	o.refs[owner] = now
	return nil
}

// releaseAll releases those of refs that keep does not have.
func releaseAll(refs, keep map[string]refCore) {
	for _, key := range slices.Sorted(maps.Keys(refs)) {
		if ref := refs[key]; keep[key] != ref {
			ref.release()
		}
	}
}

// Unregister says that owner needs nothing any more. To unregister one that is
// not registered does nothing.
func (o *Owners[O, T]) Unregister(owner O) {
	o.mu.Lock()
	defer o.mu.Unlock()
	releaseAll(o.refs[owner], nil)
	delete(o.refs, owner)
}

// Get returns the object under key, which owner must have registered; see
// [Ref.Get].
//
// Errors: [ErrNotRegistered], and as for Ref.Get.
func (o *Owners[O, T]) Get(ctx context.Context, owner O, key string) (*engine.Object[T], error) {
	o.mu.Lock()
	ref := o.refs[owner][key]
	o.mu.Unlock()
	if ref == nil {
		return nil, about(key, fmt.Errorf("%w for %v", ErrNotRegistered, owner))
	}
	object, err := ref.get(ctx)
	return typed[T](object), err
}
