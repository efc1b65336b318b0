package bolt

import (
	"context"
	"errors"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/tree"
	"github.com/watchmill/watchmill/store/window"
)

// snapshot is what can be read at one revision without the file.
type snapshot struct {
	window.Snapshot
	oldest      store.Revision // that can be read and watched from
	undecodable undecodables
}

// undecodables are objects whose values cannot be decoded, by their keys. Those that were
// replaced since are among them, for states of the past.
type undecodables map[string]*backend.UndecodableError

// of returns why the value of o is not known, or nil if it is. Nearly always there are no
// such values, which does not cost a look-up.
func (u undecodables) of(o *store.Object) *backend.UndecodableError {
	if len(u) == 0 || o == nil {
		return nil
	}
	if unknown := u[o.Key]; unknown != nil && unknown.Revision == o.Revision {
		return unknown
	}
	return nil
}

// snapshot returns the newest snapshot, which has every write that was acknowledged
// before the call.
func (b *Backend) snapshot() (*snapshot, error) {
	if s := b.latest.Load(); s != nil {
		return s, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, store.ErrClosed
	}
	s := &snapshot{
		Snapshot:    window.Snapshot{Revision: b.revision, Base: b.tree.View(), Window: b.window.View()},
		oldest:      b.oldest(),
		undecodable: b.undecodable,
	}
	b.latest.Store(s)
	return s, nil
}

// Get returns the newest object under key, or [store.ErrNotFound], or a
// [*backend.UndecodableError].
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

// newest returns the object under key, nil if there is none, or an error if its value
// cannot be decoded. Between writes it reads the view; after a write it reads the tree,
// because a view made for a single Get would cost the next writer a copy.
func (b *Backend) newest(key string) (*store.Object, error) {
	if s := b.latest.Load(); s != nil {
		return known(s.State().Get(key), s.undecodable)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, store.ErrClosed
	}
	return known(b.find(key), b.undecodable)
}

// known returns o, or the error of its value if that is not known.
func known(o *store.Object, undecodable undecodables) (*store.Object, error) {
	if unknown := undecodable.of(o); unknown != nil {
		return nil, unknown
	}
	return o, nil
}

// find looks key up in the tree, unless recent has it: a write first reads the object
// that it replaces. The caller holds the lock.
func (b *Backend) find(key string) *store.Object {
	if b.recent != nil && b.recent.Key == key {
		return b.recent
	}
	o := b.tree.Get(key)
	if o != nil {
		b.recent = o
	}
	return o
}

// List returns a page of objects in key order. An exact list of a revision that is not in
// memory any more reads the file, once for all its pages if they are requested soon and
// no more than four states are listed alternately. If values cannot be decoded, it fails
// with up to 100 [*backend.UndecodableError], joined.
func (b *Backend) List(ctx context.Context, opts backend.ListOptions) (*backend.List, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	scan, err := opts.Scan()
	if err != nil {
		return nil, err
	}
	s, err := b.snapshot()
	if err != nil {
		return nil, err
	}
	if err := scan.Check(s.oldest, s.Revision); err != nil {
		return nil, err
	}
	if scan.Revision != 0 && scan.Revision < s.Window.Floor() {
		return b.listPast(ctx, scan)
	}
	return s.list(ctx, scan)
}

// maxUndecodable is how many values that cannot be decoded a list names.
const maxUndecodable = 100

// list reads the page that scan asks for.
func (s *snapshot) list(ctx context.Context, scan backend.Scan) (*backend.List, error) {
	state, at := s.State(), s.Revision
	if scan.Revision != 0 {
		var err error
		if state, err = s.StateAt(ctx, scan.Revision); err != nil {
			return nil, err
		}
		at = scan.Revision
	}
	if len(s.undecodable) > 0 {
		if err := s.unknown(state, scan); err != nil {
			return nil, err
		}
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

// unknown returns the joined errors of the objects that scan covers and that cannot be
// decoded.
func (s *snapshot) unknown(state *tree.View, scan backend.Scan) error {
	var all []error
	for o := range state.All(scan.Prefix, scan.After) {
		if u := s.undecodable.of(o); u != nil && len(all) < maxUndecodable {
			all = append(all, u)
		}
	}
	return errors.Join(all...)
}
