package memory

import (
	"context"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/window"
)

// snapshot is the state and history at one revision.
type snapshot struct {
	window.Snapshot
	// oldest is the oldest revision that can be read.
	oldest store.Revision
}

// snapshot returns the newest snapshot, with every write in it that was
// acknowledged before the call.
func (b *Backend) snapshot() (*snapshot, error) {
	if s := b.latest.Load(); s != nil {
		return s, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.snapshotLocked()
}

// snapshotLocked is snapshot for callers that hold the lock.
func (b *Backend) snapshotLocked() (*snapshot, error) {
	if b.closed {
		return nil, store.ErrClosed
	}
	if s := b.latest.Load(); s != nil {
		return s, nil
	}
	s := &snapshot{window.Snapshot{Revision: b.revision, Base: b.tree.View(), Window: b.window.View()}, max(b.compactedTo(), b.first)}
	b.latest.Store(s)
	return s, nil
}

// forgetLatest makes the next reader take a new snapshot. The caller holds the lock. While
// nothing is read it only loads, which costs writers less than a store.
func (b *Backend) forgetLatest() {
	if b.latest.Load() != nil {
		b.latest.Store(nil)
	}
}

// Get returns the newest object under key. Errors: [store.ErrNotFound], a [*store.KeyError],
// [store.ErrClosed], ctx's cause.
func (b *Backend) Get(ctx context.Context, key string) (*store.Object, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := store.ValidateKey(key); err != nil {
		return nil, err
	}
	o, err := b.newest(key)
	if err == nil && o == nil {
		err = &store.NotFoundError{Key: key}
	}
	return o, err
}

// newest returns the object under key, nil if there is none. It reads the view if
// there is one, else the tree, since making a view for a single Get would cost the
// next writer a copy.
func (b *Backend) newest(key string) (*store.Object, error) {
	if s := b.latest.Load(); s != nil {
		return s.State().Get(key), nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, store.ErrClosed
	}
	return b.find(key), nil
}

// lookup is a key with its object in the tree, nil if there is none. The zero value is of
// no key.
type lookup struct {
	key    string
	object *store.Object
}

// find looks key up in the tree, unless it is that of recent.
// The caller holds the lock.
func (b *Backend) find(key string) *store.Object {
	if b.recent.key != key {
		b.recent = lookup{key, b.tree.Get(key)}
	}
	return b.recent.object
}

// List returns a page of objects in key order.
//
// Errors: [*store.ExpiredError] or [*backend.ExpiredContinueError] if the revision was dropped,
// [*store.FutureError] if it has not happened, [store.ErrInvalidContinue], [*store.KeyError] or
// [*usercode.ConfigError] for opts, [store.ErrClosed], ctx's cause.
func (b *Backend) List(ctx context.Context, opts backend.ListOptions) (*backend.List, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	scan, err := opts.Scan()
	if err != nil {
		return nil, err
	}
	s, err := b.snapshotFor(scan)
	if err != nil {
		return nil, err
	}
	if err := scan.Check(s.oldest, s.Revision); err != nil {
		return nil, err
	}
	return s.list(ctx, scan)
}

// snapshotFor returns the newest snapshot for a scan, which may not fit it.
func (b *Backend) snapshotFor(scan backend.Scan) (*snapshot, error) {
	if scan.State {
		return b.listShared(scan)
	}
	return b.snapshot()
}

// list reads the page that scan describes.
func (s *snapshot) list(ctx context.Context, scan backend.Scan) (*backend.List, error) {
	state, at := s.State(), s.Revision
	if scan.Revision != 0 {
		var err error
		if state, err = s.StateAt(ctx, scan.Revision); err != nil {
			return nil, err
		}
		at = scan.Revision
	}
	if scan.State {
		return &backend.List{Revision: at, Items: []*store.Object{}, State: state}, nil
	}
	if scan.After == "" && scan.Limit == 0 {
		all := make([]*store.Object, 0, state.Len())
		return &backend.List{Revision: at, Items: state.AppendTo(all, scan.Prefix)}, nil
	}
	return backend.StatePage(scan, at, state), nil
}
