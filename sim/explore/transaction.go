package explore

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/faulty"
)

// A transaction is several changes at one revision, as another process makes them
// in a shared storage. The history has a revision for each of them, and the engine
// receives the last one for all. The revisions are translated in both directions
// between storage and the engine, and translated back in what the engine shows before
// that is judged:
//
//	memory, history    a@5  b@6  c@7      each change has its own revision
//	                    │    │    │ shown
//	engine             a@7  b@7  c@7      one revision has all of them
//	                    │    │    │ own
//	judge              a@5  b@6  c@7

// transact makes several changes at one revision, as another process would: writes and
// deletions of different keys, in key order.
func (w *World[T]) transact(s Step) {
	draw := rand.New(rand.NewPCG(s.Seed, 4))
	values := map[string]T{}
	for range 2 + s.N {
		value := w.cfg.Draw(draw)
		values[w.cfg.Engine.Key(value)] = value
	}
	made := 0
	for _, key := range sortedKeys(values) {
		if err := w.storage.change(key, values[key], draw.IntN(3) == 0); err != nil {
			w.fail(judge.Failed(judge.Refusals, s.Do.String(), "%v", err))
			return
		}
		made++
	}
	w.history().Join(made)
	w.trace.result(w.newest(), nil)
}

func sortedKeys[T any](values map[string]T) []string {
	keys := make([]string, 0, len(values))
	for key := range values {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, cmp.Compare[string])
	return keys
}

// change writes a value under a key or, if remove is set and there is one, deletes the
// object there. The engine has no part in the call.
func (s *storage[T]) change(key string, value T, remove bool) error {
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
		_, err = s.Unwrap().Remove(ctx, prev)
		s.history.Delete(key)
		return err
	}
	_, err = s.Unwrap().Put(ctx, s.draft(key, value), prev, backend.PutOptions{})
	s.history.Put(key, value)
	return err
}

// showTransactions is the rule that shows the engine each transaction as one revision.
func (s *storage[T]) showTransactions(_ context.Context, c *faulty.Call, proceed func()) {
	c.Prev = s.own(c.Prev)
	proceed()
	if c.Op == faulty.OpNext {
		s.wholeBatch(c, proceed)
	}
	if c.Err != nil {
		return
	}
	c.Object = s.shown(c.Object)
	if c.Page != nil {
		page := *c.Page
		page.Items = slices.Clone(page.Items)
		for i, o := range page.Items {
			page.Items[i] = s.shown(o)
		}
		c.Page = &page
	}
}

// wholeBatch reads on until the batch does not end in the middle of a transaction, and
// gives its events the revisions that the engine sees.
func (s *storage[T]) wholeBatch(c *faulty.Call, proceed func()) {
	all := c.Batch
	for c.Err == nil && s.history.Shown(c.Batch.Through) != c.Batch.Through {
		proceed()
		all.Through, all.Events = c.Batch.Through, slices.Concat(all.Events, c.Batch.Events)
	}
	events := make([]store.Event, len(all.Events))
	for i, ev := range all.Events {
		ev.Revision, ev.Object, ev.Prev = s.history.Shown(ev.Revision), s.shown(ev.Object), s.shown(ev.Prev)
		events[i] = ev
	}
	all.Events = events
	c.Batch = all
}

// shown returns an object of storage with the revisions that the engine sees, nil for nil.
func (s *storage[T]) shown(o *store.Object) *store.Object {
	if o == nil {
		return nil
	}
	return s.at(o, s.history.Shown(o.Revision), s.history.Shown(o.Created))
}

// own returns an object of the engine with the revisions that storage has, nil for nil.
func (s *storage[T]) own(o *store.Object) *store.Object {
	if o == nil {
		return nil
	}
	return s.at(o, s.history.Own(o.Key, o.Revision), s.history.Own(o.Key, o.Created))
}

// at returns the object with the given revisions: o itself if it has them, otherwise a
// copy.
func (s *storage[T]) at(o *store.Object, revision, created store.Revision) *store.Object {
	if o.Revision == revision && o.Created == created {
		return o
	}
	o = s.schema.Clone(o)
	o.Revision, o.Created = revision, created
	return o
}

// own returns an object that the engine has shown with the revisions that the history has,
// nil for nil.
func (w *World[T]) own(o *engine.Object[T]) *engine.Object[T] {
	if o == nil {
		return nil
	}
	revision, created := w.history().Own(o.Key, o.Revision), w.history().Own(o.Key, o.Created)
	if o.Revision == revision && o.Created == created {
		return o
	}
	own := *o
	own.Revision, own.Created = revision, created
	return &own
}

// ownEvent is own for an event. A bookmark keeps its revision, since it stands for all
// changes of a transaction.
func (w *World[T]) ownEvent(ev engine.Event[T]) engine.Event[T] {
	if ev.Type != store.Bookmark {
		ev.Revision = w.history().Own(ev.Key(), ev.Revision)
	}
	ev.Object, ev.Prev = w.own(ev.Object), w.own(ev.Prev)
	return ev
}

// ownAll is own for a list.
func (w *World[T]) ownAll(objects []*engine.Object[T]) []*engine.Object[T] {
	all := make([]*engine.Object[T], len(objects))
	for i, o := range objects {
		all[i] = w.own(o)
	}
	return all
}
