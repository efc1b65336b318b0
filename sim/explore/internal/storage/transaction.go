package storage

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/faulty"
)

// Transact writes the values under their keys or, where remove returns true, deletes the
// object there if there is one, all at one revision and in key order.
func (s *Storage[T]) Transact(values map[string]T, remove func() bool) error {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if err := s.change(key, values[key], remove()); err != nil {
			return err
		}
	}
	s.History.Join(len(values))
	s.stamp()
	return nil
}

// change writes a value under a key or, if remove is set and there is one, deletes the
// object there. The engine has no part in the call.
func (s *Storage[T]) change(key string, value T, remove bool) error {
	ctx := context.Background()
	prev, err := s.Unwrap().Get(ctx, key)
	switch {
	case errors.Is(err, store.ErrNotFound):
		prev = nil
	case err != nil:
		return err
	}
	s.leases.remove(key)
	if prev != nil && remove {
		gone, err := s.Unwrap().Remove(ctx, prev)
		if err == nil {
			s.History.Delete(key)
			s.History.Date(gone.Written, gone.Expires)
		}
		return err
	}
	o, err := s.Unwrap().Put(ctx, s.newObject(key, value), prev, backend.PutOptions{})
	if err == nil {
		s.History.Put(key, value)
		s.History.Date(o.Written, o.Expires)
	}
	return err
}

// showTransactions is the rule that shows the engine each transaction as one revision. A watch
// from a revision that lay in the future, and is inside a transaction now, has all of it.
func (s *Storage[T]) showTransactions(_ context.Context, c *faulty.Call, proceed func()) {
	c.Prev = s.historyObject(c.Prev)
	c.WatchOptions.From = s.History.Before(c.WatchOptions.From)
	proceed()
	if c.Op == faulty.OpNext {
		s.wholeBatch(c, proceed)
	}
	if c.Err != nil {
		return
	}
	c.Object = s.shownObject(c.Object)
	if c.Page != nil {
		page := *c.Page
		page.Items = slices.Clone(page.Items)
		for i, o := range page.Items {
			page.Items[i] = s.shownObject(o)
		}
		c.Page = &page
	}
}

// wholeBatch reads on until the batch does not end in the middle of a transaction, and
// gives its events the revisions that the engine sees.
func (s *Storage[T]) wholeBatch(c *faulty.Call, proceed func()) {
	all := c.Batch
	for c.Err == nil && s.History.Shown(c.Batch.Through) != c.Batch.Through {
		proceed()
		all.Through, all.Events = c.Batch.Through, slices.Concat(all.Events, c.Batch.Events)
	}
	events := make([]store.Event, len(all.Events))
	for i, ev := range all.Events {
		ev.Revision, ev.Object, ev.Prev = s.History.Shown(ev.Revision), s.shownObject(ev.Object), s.shownObject(ev.Prev)
		events[i] = ev
	}
	all.Events = events
	c.Batch = all
}

// shownObject returns an object of storage with the revisions that the engine sees, nil for nil.
func (s *Storage[T]) shownObject(o *store.Object) *store.Object {
	if o == nil {
		return nil
	}
	return s.withRevisions(o, s.History.Shown(o.Revision), s.History.Shown(o.Created))
}

// historyObject returns an object of the engine with the revisions that storage has, nil for nil.
func (s *Storage[T]) historyObject(o *store.Object) *store.Object {
	if o == nil {
		return nil
	}
	return s.withRevisions(o, s.History.RevisionOf(o.Key, o.Revision), s.History.RevisionOf(o.Key, o.Created))
}

// withRevisions returns the object with the given revisions: o itself if it has them, otherwise a
// copy.
func (s *Storage[T]) withRevisions(o *store.Object, revision, created store.Revision) *store.Object {
	if o.Revision == revision && o.Created == created {
		return o
	}
	o = s.Schema.Clone(o)
	o.Revision, o.Created = revision, created
	return o
}
