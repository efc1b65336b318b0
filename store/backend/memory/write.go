package memory

import (
	"context"
	"fmt"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// Put writes value under key if the object there is still at revision expect.
func (b *Backend[T]) Put(ctx context.Context, key string, value T, expect store.Revision, opts backend.PutOptions) (*store.Object[T], error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	o, size, err := b.prepare(ctx, key, value)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	woken, err := b.put(o, size, expect, opts.TTL)
	b.mu.Unlock()
	if err != nil {
		return nil, err
	}
	wakeAll(woken)
	return o, nil
}

// Remove deletes the object under key if it is still at revision expect.
func (b *Backend[T]) Remove(ctx context.Context, key string, expect store.Revision) (*store.Object[T], error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := store.ValidateKey(key); err != nil {
		return nil, err
	}
	if expect == 0 {
		return nil, &backend.OptionError{Option: "expect", Problem: "it is zero; give the revision of the object to remove"}
	}
	last, err := b.newest(key)
	if err == nil {
		err = expected(key, last, expect)
	}
	if err != nil {
		return nil, err
	}
	size, err := b.measure(last)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	gone, woken, err := b.remove(key, size, expect)
	b.mu.Unlock()
	wakeAll(woken)
	return gone, err
}

// Emit gives value the next revision and shows it to watches alone.
func (b *Backend[T]) Emit(ctx context.Context, key string, value T) (*store.Object[T], error) {
	o, size, err := b.prepare(ctx, key, value)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	if err := b.closedError(); err != nil {
		b.mu.Unlock()
		return nil, err
	}
	o.Revision = b.revision + 1
	o.Created, o.Written = o.Revision, b.clock.Now()
	woken := b.commit(store.Event[T]{Type: store.Emitted, Revision: o.Revision, Object: o}, size)
	b.mu.Unlock()
	wakeAll(woken)
	return o, nil
}

// prepare does what a write can do before it takes the lock, which is all that
// runs code of the user's.
func (b *Backend[T]) prepare(ctx context.Context, key string, value T) (*store.Object[T], int, error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	if err := store.ValidateKey(key); err != nil {
		return nil, 0, err
	}
	o := &store.Object[T]{Key: key, Value: value}
	if err := backend.Describe(&b.schema, o); err != nil {
		return nil, 0, err
	}
	size, err := b.measure(o)
	return o, size, err
}

// measure returns the bytes that o counts in the history.
func (b *Backend[T]) measure(o *store.Object[T]) (size int, err error) {
	if b.schema.Size == nil {
		return store.DefaultSize, nil
	}
	err = backend.Contain("Schema.Size", o.Key, func() { size = b.schema.SizeOf(o) })
	return size, err
}

// expected returns an error unless o, the object under key or nil, is at
// revision expect.
func expected[T any](key string, o *store.Object[T], expect store.Revision) error {
	switch {
	case o == nil && expect == 0:
		return nil
	case expect == 0:
		return fmt.Errorf("%q is there since revision %d: %w", key, o.Created, store.ErrExists)
	case o == nil:
		return &store.NotFoundError{Key: key, Expected: expect}
	case o.Revision != expect:
		return fmt.Errorf("%q is at revision %d, not %d: %w", key, o.Revision, expect, store.ErrConflict)
	}
	return nil
}

// put completes o and commits it. The caller holds the lock.
func (b *Backend[T]) put(o *store.Object[T], size int, expect store.Revision, ttl time.Duration) ([]*watcher[T], error) {
	if b.closed {
		return nil, store.ErrClosed
	}
	prev := b.find(o.Key)
	if err := expected(o.Key, prev, expect); err != nil {
		return nil, err
	}
	ev := store.Event[T]{Type: store.Added, Revision: b.revision + 1, Object: o, Prev: prev}
	o.Revision, o.Created, o.Written = ev.Revision, ev.Revision, b.clock.Now()
	if prev != nil {
		ev.Type, o.Created = store.Modified, prev.Created
		b.expiries.remove(prev)
		o.ShareAttributes(prev)
	}
	if ttl > 0 {
		o.Expires = o.Written.Add(ttl)
		b.expiries.add(o, size)
	}
	b.expire.set(b.expiries.earliest())
	return b.commit(ev, size), nil
}

// remove deletes the object under key. The caller holds the lock.
func (b *Backend[T]) remove(key string, size int, expect store.Revision) (*store.Object[T], []*watcher[T], error) {
	if b.closed {
		return nil, nil, store.ErrClosed
	}
	last := b.find(key)
	if err := expected(key, last, expect); err != nil {
		return nil, nil, err
	}
	b.expiries.remove(last)
	b.expire.set(b.expiries.earliest())
	gone, woken := b.bury(last, size)
	return gone, woken, nil
}

// bury commits the deletion of last. The caller holds the lock.
func (b *Backend[T]) bury(last *store.Object[T], size int) (*store.Object[T], []*watcher[T]) {
	gone := last.Gone(b.revision+1, b.clock.Now())
	ev := store.Event[T]{Type: store.Deleted, Revision: gone.Revision, Object: gone, Prev: last}
	return gone, b.commit(ev, size)
}

// commit is the one place where the state changes: it appends ev, which has
// the next revision, and returns the watchers to wake once the lock, which the
// caller holds, has been released.
func (b *Backend[T]) commit(ev store.Event[T], size int) []*watcher[T] {
	b.size = size
	b.window.Append(ev, ev.Object.Written, b.tree)
	switch ev.Type {
	case store.Added, store.Modified:
		b.tree.Put(ev.Object)
		b.recent = ev.Object
	case store.Deleted:
		b.tree.Delete(ev.Object.Key)
		b.recent = nil
	}
	b.revision = ev.Revision
	b.latest.Store(nil)
	b.window.Trim(ev.Object.Written)
	if !b.trim.isSet() {
		b.trim.set(ev.Object.Written.Add(b.retain.MinAge))
	}
	return b.waiting.take()
}
