package memory

import (
	"context"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/internal/expiry"
	"github.com/watchmill/watchmill/store/backend/internal/waiting"
	"github.com/watchmill/watchmill/usercode"
)

// Put stores draft if the object under its key is still prev. Errors: those of
// [backend.Backend], except that the outcome is never unknown.
func (b *Backend) Put(ctx context.Context, draft, prev *store.Object, opts backend.PutOptions) (*store.Object, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	w := put{draft: draft, expect: revisionOf(prev), opts: opts}
	var err error
	if w.size, err = b.prepare(ctx, draft); err != nil {
		return nil, err
	}
	if w.expect != 0 {
		if w.oldSize, err = b.measure(draft.Key, w.expect); err != nil {
			return nil, err
		}
	}
	woken, err := b.put(w)
	if err != nil {
		return nil, err
	}
	waiting.WakeAll(woken)
	return draft, nil
}

// revisionOf returns o's revision, zero for none.
func revisionOf(o *store.Object) store.Revision {
	if o == nil {
		return 0
	}
	return o.Revision
}

// Remove deletes the object under prev's key if it is still prev. Errors as for Put.
func (b *Backend) Remove(ctx context.Context, prev *store.Object) (*store.Object, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if prev == nil || prev.Revision == 0 {
		return nil, &usercode.ConfigError{Field: "prev", Problem: "has no revision; give the object to remove as storage returned it"}
	}
	key, expect := prev.Key, prev.Revision
	if err := store.ValidateKey(key); err != nil {
		return nil, err
	}
	size, err := b.measure(key, expect)
	if err != nil {
		return nil, err
	}
	gone, woken, err := b.remove(key, size, expect)
	waiting.WakeAll(woken)
	return gone, err
}

// Emit gives o the next revision and delivers it to watches only. Errors as for Put.
func (b *Backend) Emit(ctx context.Context, o *store.Object) (*store.Object, error) {
	size, err := b.prepare(ctx, o)
	if err != nil {
		return nil, err
	}
	woken, err := b.emit(o, size)
	if err != nil {
		return nil, err
	}
	waiting.WakeAll(woken)
	return o, nil
}

// prepare does what a write can do before it takes the lock. It calls all user code
// except that of [store.Schema.Stamp], which needs the revision.
func (b *Backend) prepare(ctx context.Context, draft *store.Object) (size int, err error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	if err := store.ValidateKey(draft.Key); err != nil {
		return 0, err
	}
	return backend.Measure(&b.schema, draft)
}

// measure returns the size of the object under key, which must be at revision
// expect. It runs user code without the lock: the commit checks that the object
// still has that revision.
func (b *Backend) measure(key string, expect store.Revision) (size int, err error) {
	o, err := b.newest(key)
	if err == nil {
		err = backend.CheckExpected(key, o, expect)
	}
	if err != nil {
		return 0, err
	}
	return backend.Measure(&b.schema, o)
}

// put is a Put that is ready to be committed.
type put struct {
	draft *store.Object
	// size is that of the draft, oldSize that of the object that it replaces.
	size, oldSize int
	expect        store.Revision
	opts          backend.PutOptions
}

// put completes the draft and commits it. As the other writes do, it reads the clock, which may fail, before it
// changes anything, and sets the alarms once the change is complete, since the clock may end the goroutine. Then
// the next write sets them, and notifies the watches.
func (b *Backend) put(w put) ([]*waiting.Follower, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, store.ErrClosed
	}
	o := w.draft
	prev := b.find(o.Key)
	if err := backend.CheckExpected(o.Key, prev, w.expect); err != nil {
		return nil, err
	}
	ev := store.Event{Type: store.Added, Revision: b.revision + 1, Object: o, Prev: prev}
	now, err := expiry.Now(b.clock)
	if err != nil {
		return nil, err
	}
	if err := b.schema.Stamp(o, ev.Revision); err != nil {
		return nil, err
	}
	o.Revision, o.Created, o.Written = ev.Revision, ev.Revision, now
	if prev != nil {
		ev.Type, o.Created = store.Modified, prev.Created
		b.expiries.Remove(prev)
		store.ShareAttributes(o, prev)
	}
	if o.Expires = w.opts.Expires(o.Written, prev); !o.Expires.IsZero() {
		b.expiries.Add(o, w.size)
	}
	b.commit(ev, w.oldSize)
	b.setAlarms(1, now)
	return b.waiting.Take(), nil
}

// emit completes o and commits its event.
func (b *Backend) emit(o *store.Object, size int) ([]*waiting.Follower, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.closedError(); err != nil {
		return nil, err
	}
	now, err := expiry.Now(b.clock)
	if err != nil {
		return nil, err
	}
	if err := b.schema.Stamp(o, b.revision+1); err != nil {
		return nil, err
	}
	o.Revision, o.Created, o.Written = b.revision+1, b.revision+1, now
	b.commit(store.Event{Type: store.Emitted, Revision: o.Revision, Object: o}, size)
	b.trimLater(now)
	return b.waiting.Take(), nil
}

// remove deletes the object under key.
func (b *Backend) remove(key string, size int, expect store.Revision) (*store.Object, []*waiting.Follower, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, nil, store.ErrClosed
	}
	last := b.find(key)
	if err := backend.CheckExpected(key, last, expect); err != nil {
		return nil, nil, err
	}
	now, err := expiry.Now(b.clock)
	if err != nil {
		return nil, nil, err
	}
	gone := b.commitDeletion(last, size, now)
	b.setAlarms(1, now)
	return gone, b.waiting.Take(), nil
}

// commitDeletion commits the deletion of last at a time. It first calls user code, which may
// end the goroutine: then nothing has changed. The caller holds the lock.
func (b *Backend) commitDeletion(last *store.Object, size int, at time.Time) *store.Object {
	gone := b.schema.Gone(last, b.revision+1, at)
	b.expiries.Remove(last)
	ev := store.Event{Type: store.Deleted, Revision: gone.Revision, Object: gone, Prev: last}
	b.commit(ev, size)
	return gone
}

// commit is the only place where the state changes: it appends ev, which has the
// next revision. The caller notifies the waiting watches after it has released the
// lock. size is that of the object that only history keeps from now on.
func (b *Backend) commit(ev store.Event, size int) {
	b.size = size
	b.window.Append(ev, ev.Object.Written)
	switch ev.Type {
	case store.Added, store.Modified:
		b.tree.Put(ev.Object)
		b.recent, b.changed = lookup{ev.Object.Key, ev.Object}, ev.Revision
	case store.Deleted:
		b.tree.Delete(ev.Object.Key)
		b.recent, b.changed = lookup{key: ev.Object.Key}, ev.Revision
	}
	b.revision = ev.Revision
	b.forgetLatest()
	b.expireHolds(ev.Object.Written)
	b.window.TrimRead(ev.Object.Written, b.unread())
}
