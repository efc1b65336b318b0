package store

import (
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"
)

// ErrNoClock: an [ExpirationCache] was not told where the time comes from.
var ErrNoClock = errors.New("no clock")

// ExpirationConfig says how an [ExpirationCache] treats its items. Key and Now
// are required. The functions must not use the cache.
type ExpirationConfig[T any] struct {
	// Key returns the key of an item.
	Key KeyFunc[T]
	// Now returns the current time.
	Now func() time.Time
	// TTL returns how long an item that is stored now will live; zero or less
	// means for ever. It is called once for each item that is stored. Nil means
	// that all live for ever.
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

// ExpirationCache is a store whose items die: it does not show them once they
// are older than their time to live. Their memory is freed when somebody asks
// for them or calls [ExpirationCache.Purge]. Make one with
// [NewExpirationCache].
//
// It is safe for concurrent use, has no timer and no goroutine. Listings are in
// ascending order of keys.
type ExpirationCache[T any] struct {
	cfg     ExpirationConfig[T]
	burying sync.Mutex // held by writers, so that what dies is not what just came
	items   ThreadSafeStore[mortal[T]]
}

// mortal is an item with the last time at which it lives; zero means for ever.
type mortal[T any] struct {
	item  T
	until time.Time
}

func (m *mortal[T]) dead(now time.Time) bool { return !m.until.IsZero() && now.After(m.until) }

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

// Update stores item, replacing the one with its key, if there is one. Its life
// begins anew. The errors are [*KeyFuncError] and TTL's panic as a
// [*usercode.PanicError].
func (c *ExpirationCache[T]) Update(item T) error {
	key, born, err := c.born(item)
	if err != nil {
		return err
	}
	c.burying.Lock()
	defer c.burying.Unlock()
	return c.items.Update(key, born, 0)
}

// Delete removes the item with item's key, if there is one. The error is a
// [*KeyFuncError].
func (c *ExpirationCache[T]) Delete(item T) error {
	key, err := c.keyOf(item)
	if err != nil {
		return err
	}
	c.burying.Lock()
	defer c.burying.Unlock()
	c.items.Delete(key, 0)
	return nil
}

// Replace makes items the only contents; of those with the same key the last
// counts. rev is the revision that they were listed at, zero if unknown. The
// errors are those of [ExpirationCache.Update]: one bad item leaves everything
// as it was.
func (c *ExpirationCache[T]) Replace(items []T, rev Revision) error {
	keys, born := make([]string, len(items)), make([]mortal[T], len(items))
	for i, item := range items {
		var err error
		if keys[i], born[i], err = c.born(item); err != nil {
			return err
		}
	}
	c.burying.Lock()
	defer c.burying.Unlock()
	return c.items.Replace(func(yield func(string, mortal[T]) bool) {
		for i, key := range keys {
			if !yield(key, born[i]) {
				return
			}
		}
	}, rev)
}

// Get returns the living item with item's key and whether there is one. The
// error is a [*KeyFuncError].
func (c *ExpirationCache[T]) Get(item T) (stored T, exists bool, err error) {
	key, err := c.keyOf(item)
	if err != nil {
		return stored, false, err
	}
	stored, exists = c.GetByKey(key)
	return stored, exists, nil
}

// GetByKey returns the living item with the key and whether there is one. One
// that is dead is removed.
func (c *ExpirationCache[T]) GetByKey(key string) (item T, exists bool) {
	found, exists := c.items.Get(key)
	if !exists {
		return item, false
	}
	if now := c.cfg.Now(); found.dead(now) {
		c.bury(now, key)
		return item, false
	}
	return found.item, true
}

// All iterates over the keys and items that live when the loop starts.
func (c *ExpirationCache[T]) All() iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		now := c.cfg.Now()
		for key, m := range c.items.All() {
			if !m.dead(now) && !yield(key, m.item) {
				return
			}
		}
	}
}

// List returns the living items in a new slice, and removes the dead.
func (c *ExpirationCache[T]) List() []T {
	c.Purge()
	var list []T
	for _, item := range c.All() {
		list = append(list, item)
	}
	return list
}

// ListKeys returns the keys of the living items in a new slice.
func (c *ExpirationCache[T]) ListKeys() []string {
	var keys []string
	for key := range c.All() {
		keys = append(keys, key)
	}
	return keys
}

// LastRevision returns the revision of the last Replace that had one.
func (c *ExpirationCache[T]) LastRevision() Revision { return c.items.LastRevision() }

// Purge removes the dead and returns how many there were. It takes time
// proportional to the number of items.
func (c *ExpirationCache[T]) Purge() int {
	now := c.cfg.Now()
	var dead []string
	for key, m := range c.items.All() {
		if m.dead(now) {
			dead = append(dead, key)
		}
	}
	return c.bury(now, dead...)
}

// bury removes those of keys that are still dead, as they may have been stored
// again since they were found so, and returns how many.
func (c *ExpirationCache[T]) bury(now time.Time, keys ...string) int {
	c.burying.Lock()
	defer c.burying.Unlock()
	var burials []KeyedTransaction[mortal[T]]
	for _, key := range keys {
		if m, exists := c.items.Get(key); exists && m.dead(now) {
			burials = append(burials, KeyedTransaction[mortal[T]]{Type: TransactionDelete, Key: key})
		}
	}
	if len(burials) > 0 {
		_ = c.items.Transaction(burials...) // deletions cannot fail
	}
	return len(burials)
}

// born runs the user's functions on an item that is to be stored.
func (c *ExpirationCache[T]) born(item T) (key string, m mortal[T], err error) {
	if key, err = c.keyOf(item); err != nil || c.cfg.TTL == nil {
		return key, mortal[T]{item: item}, err
	}
	ttl, err := contained("ExpirationConfig.TTL", func(item T) (time.Duration, error) { return c.cfg.TTL(item), nil }, item)
	if err != nil {
		return key, m, fmt.Errorf("time to live of %q: %w", key, err)
	}
	m.item = item
	if ttl > 0 {
		m.until = c.cfg.Now().Add(ttl)
	}
	return key, m, nil
}

func (c *ExpirationCache[T]) keyOf(item T) (string, error) {
	key, err := contained("ExpirationConfig.Key", c.cfg.Key, item)
	if err != nil {
		return "", &KeyFuncError[T]{Item: item, Err: err}
	}
	return key, nil
}
