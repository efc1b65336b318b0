package objectcache

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/watchmill/watchmill/engine"
)

// Owners keeps references for owners, each of which needs a changing set of keys, as a
// pod needs secrets. Make one with [NewOwners]. All methods are safe for concurrent use.
//
// O identifies an owner. If one can be replaced by another of the same name, O
// must tell them apart, by a UID for example: then they may be registered and
// unregistered in any order.
type Owners[O comparable, T any] struct {
	cache cacheCore
	mu    sync.Mutex
	refs  map[O]map[string]refCore
}

// NewOwners returns Owners without owners. It need not be closed: closing the cache is
// enough.
func NewOwners[O comparable, T any](cache *Cache[T]) *Owners[O, T] {
	return &Owners[O, T]{cache: cache.core, refs: make(map[O]map[string]refCore)}
}

// Register makes keys the keys that owner needs. It acquires the new ones and releases
// those that are not needed any more. It does not block. After an error nothing has
// changed.
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

// releaseAll releases the refs whose keys are not in keep.
func releaseAll(refs, keep map[string]refCore) {
	for _, key := range slices.Sorted(maps.Keys(refs)) {
		if ref := refs[key]; keep[key] != ref {
			ref.release()
		}
	}
}

// Unregister releases all keys of owner. For an owner that is not registered it does
// nothing.
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
