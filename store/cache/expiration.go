package cache

import (
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/watchmill/watchmill/store"
)

// ExpirationConfig says how an [ExpirationCache] treats its items. Key and Now
// are required. The functions must not use the cache.
type ExpirationConfig[T any] struct {
	// Key returns the key of an item.
	Key store.KeyFunc[T]
	// Now returns the current time.
	Now func() time.Time
	// TTL returns how long an item that is stored now will live; zero or less
	// means forever. It is called once for each item that is stored. Nil means
	// that no item expires.
	TTL func(T) time.Duration
}

func (c *ExpirationConfig[T]) validate() error {
	switch {
	case c.Key == nil:
		return fmt.Errorf("ExpirationConfig.Key: %w: give a function that returns an item's key", ErrNoKeyFunc)
	case c.Now == nil:
		return fmt.Errorf("ExpirationConfig.Now: %w: give a function that returns the current time", ErrNoClock)
	}
	return nil
}

// ExpirationCache is a store whose items expire: it does not return them once
// they are older than their time to live. Their memory is freed when they are
// read or by [ExpirationCache.Purge]. Make one with [NewExpirationCache].
//
// It is safe for concurrent use, has no timer and no goroutine. Listings are in
// ascending order of keys.
type ExpirationCache[T any] struct {
	cfg     ExpirationConfig[T]
	writing sync.Mutex // held by writers, so that an item stored again is not removed as expired
	items   ThreadSafeStore[expiring[T]]
}

// expiring is an item with the last time at which it is valid; zero means forever.
type expiring[T any] struct {
	item  T
	until time.Time
}

func (e *expiring[T]) expired(now time.Time) bool { return !e.until.IsZero() && now.After(e.until) }

// NewExpirationCache returns an empty cache. The errors are [ErrNoKeyFunc] and
// [ErrNoClock].
func NewExpirationCache[T any](cfg ExpirationConfig[T]) (*ExpirationCache[T], error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &ExpirationCache[T]{cfg: cfg}, nil
}

// Add stores item, replacing the one with its key: it is the same as
// [ExpirationCache.Update].
func (c *ExpirationCache[T]) Add(item T) error { return c.Update(item) }

// Update stores item, replacing the one with its key, if there is one. Its time
// to live starts now. The errors are [*store.KeyFuncError] and TTL's panic as a
// [*usercode.PanicError].
func (c *ExpirationCache[T]) Update(item T) error {
	key, prepared, err := c.prepare(item)
	if err != nil {
		return err
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	return c.items.Update(key, prepared, 0)
}

// Delete removes the item with item's key, if there is one. The error is a
// [*store.KeyFuncError].
func (c *ExpirationCache[T]) Delete(item T) error {
	key, err := c.keyOf(item)
	if err != nil {
		return err
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	c.items.Delete(key, 0)
	return nil
}

// Replace makes items the only contents; of those with the same key the last
// counts. rev is the revision that they were listed at, zero if unknown. The
// errors are those of [ExpirationCache.Update]: one bad item leaves everything
// as it was.
func (c *ExpirationCache[T]) Replace(items []T, rev store.Revision) error {
	keys, prepared := make([]string, len(items)), make([]expiring[T], len(items))
	for i, item := range items {
		var err error
		if keys[i], prepared[i], err = c.prepare(item); err != nil {
			return err
		}
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	return c.items.Replace(func(yield func(string, expiring[T]) bool) {
		for i, key := range keys {
			if !yield(key, prepared[i]) {
				return
			}
		}
	}, rev)
}

// Get returns the unexpired item with item's key and whether there is one. The
// error is a [*store.KeyFuncError].
func (c *ExpirationCache[T]) Get(item T) (stored T, exists bool, err error) {
	key, err := c.keyOf(item)
	if err != nil {
		return stored, false, err
	}
	stored, exists = c.GetByKey(key)
	return stored, exists, nil
}

// GetByKey returns the unexpired item with the key and whether there is one. It
// removes an expired one.
func (c *ExpirationCache[T]) GetByKey(key string) (item T, exists bool) {
	found, exists := c.items.Get(key)
	if !exists {
		return item, false
	}
	if now := c.cfg.Now(); found.expired(now) {
		c.removeExpired(now, key)
		return item, false
	}
	return found.item, true
}

// All iterates over the keys and items that are unexpired when the loop starts.
func (c *ExpirationCache[T]) All() iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		now := c.cfg.Now()
		for key, e := range c.items.All() {
			if !e.expired(now) && !yield(key, e.item) {
				return
			}
		}
	}
}

// List returns the unexpired items in a new slice, and removes the others.
func (c *ExpirationCache[T]) List() []T {
	c.Purge()
	var list []T
	for _, item := range c.All() {
		list = append(list, item)
	}
	return list
}

// ListKeys returns the keys of the unexpired items in a new slice.
func (c *ExpirationCache[T]) ListKeys() []string {
	var keys []string
	for key := range c.All() {
		keys = append(keys, key)
	}
	return keys
}

// LastRevision returns the revision of the last Replace that had one.
func (c *ExpirationCache[T]) LastRevision() store.Revision { return c.items.LastRevision() }

// Purge removes the expired items and returns their number. It takes time
// proportional to the number of items.
func (c *ExpirationCache[T]) Purge() int {
	now := c.cfg.Now()
	var expired []string
	for key, e := range c.items.All() {
		if e.expired(now) {
			expired = append(expired, key)
		}
	}
	return c.removeExpired(now, expired...)
}

// removeExpired removes those of keys that are still expired, since they may have
// been stored again meanwhile, and returns how many.
func (c *ExpirationCache[T]) removeExpired(now time.Time, keys ...string) int {
	c.writing.Lock()
	defer c.writing.Unlock()
	var deletions []KeyedTransaction[expiring[T]]
	for _, key := range keys {
		if e, exists := c.items.Get(key); exists && e.expired(now) {
			deletions = append(deletions, KeyedTransaction[expiring[T]]{Type: TransactionDelete, Key: key})
		}
	}
	if len(deletions) > 0 {
		_ = c.items.Transaction(deletions...) // deletions cannot fail
	}
	return len(deletions)
}

// prepare runs the user's functions on an item that is to be stored.
func (c *ExpirationCache[T]) prepare(item T) (key string, e expiring[T], err error) {
	if key, err = c.keyOf(item); err != nil || c.cfg.TTL == nil {
		return key, expiring[T]{item: item}, err
	}
	ttl, err := contained("ExpirationConfig.TTL", func(item T) (time.Duration, error) { return c.cfg.TTL(item), nil }, item)
	if err != nil {
		return key, e, fmt.Errorf("time to live of %q: %w", key, err)
	}
	e.item = item
	if ttl > 0 {
		e.until = c.cfg.Now().Add(ttl)
	}
	return key, e, nil
}

func (c *ExpirationCache[T]) keyOf(item T) (string, error) {
	return keyOf("ExpirationConfig.Key", c.cfg.Key, item)
}
