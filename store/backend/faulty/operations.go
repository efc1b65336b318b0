package faulty

import (
	"context"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// Get returns the newest object under key; see [backend.Backend].
func (b *Backend) Get(ctx context.Context, key string) (*store.Object, error) {
	c := &Call{Op: OpGet, Key: key}
	b.do(ctx, c, func(beneath backend.Backend) { c.Object, c.Err = beneath.Get(ctx, c.Key) })
	return c.object()
}

// List returns a page of objects; see [backend.ListerWatcher].
func (b *Backend) List(ctx context.Context, opts backend.ListOptions) (*backend.List, error) {
	opts.State = opts.State && b.opts.ShareState
	c := &Call{Op: OpList, Key: opts.Prefix, ListOptions: opts}
	b.do(ctx, c, func(beneath backend.Backend) { c.Page, c.Err = beneath.List(ctx, c.ListOptions) })
	if c.Err != nil {
		return nil, c.Err
	}
	return c.Page, nil
}

// Put stores draft; see [backend.Backend].
func (b *Backend) Put(ctx context.Context, draft, prev *store.Object, opts backend.PutOptions) (*store.Object, error) {
	c := &Call{Op: OpPut, Key: draft.Key, Draft: draft, Prev: prev, PutOptions: opts}
	b.do(ctx, c, func(beneath backend.Backend) { c.Object, c.Err = beneath.Put(ctx, c.Draft, c.Prev, c.PutOptions) })
	return c.object()
}

// Remove deletes the object under prev's key; see [backend.Backend].
func (b *Backend) Remove(ctx context.Context, prev *store.Object) (*store.Object, error) {
	c := &Call{Op: OpRemove, Prev: prev}
	if prev != nil { // else the backend refuses it
		c.Key = prev.Key
	}
	b.do(ctx, c, func(beneath backend.Backend) { c.Object, c.Err = beneath.Remove(ctx, c.Prev) })
	return c.object()
}

// Emit passes draft through; see [backend.Emitter].
func (b *Backend) Emit(ctx context.Context, draft *store.Object) (*store.Object, error) {
	c := &Call{Op: OpEmit, Key: draft.Key, Draft: draft}
	b.do(ctx, c, func(beneath backend.Backend) {
		emitter, ok := beneath.(backend.Emitter)
		if !ok {
			c.Err = store.ErrUnsupported
			return
		}
		c.Object, c.Err = emitter.Emit(ctx, c.Draft)
	})
	return c.object()
}

// Revision returns the newest revision; see [backend.Backend].
func (b *Backend) Revision(ctx context.Context) (store.Revision, error) {
	c := &Call{Op: OpRevision}
	b.do(ctx, c, func(beneath backend.Backend) { c.Revision, c.Err = beneath.Revision(ctx) })
	return c.revision()
}

// Compact discards the history before rev; see [backend.Backend].
func (b *Backend) Compact(ctx context.Context, rev store.Revision) error {
	c := &Call{Op: OpCompact, Revision: rev}
	b.do(ctx, c, func(beneath backend.Backend) { c.Err = beneath.Compact(ctx, c.Revision) })
	return c.Err
}

// Compacted returns the revision of the last compaction; see [backend.Backend].
func (b *Backend) Compacted(ctx context.Context) (store.Revision, error) {
	c := &Call{Op: OpCompacted}
	b.do(ctx, c, func(beneath backend.Backend) { c.Revision, c.Err = beneath.Compacted(ctx) })
	return c.revision()
}

func (c *Call) object() (*store.Object, error) {
	if c.Err != nil {
		return nil, c.Err
	}
	return c.Object, nil
}

func (c *Call) revision() (store.Revision, error) {
	if c.Err != nil {
		return 0, c.Err
	}
	return c.Revision, nil
}
