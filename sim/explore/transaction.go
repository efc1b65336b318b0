package explore

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/explore/script"
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
//	                    │    │    │ shownObject
//	engine             a@7  b@7  c@7      one revision has all of them
//	                    │    │    │ historyObject
//	judge              a@5  b@6  c@7

// transact makes several changes at one revision, as another process would: writes and
// deletions of different keys, in key order.
func (w *World[T]) transact(s script.Step) {
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
	_, err = s.Unwrap().Put(ctx, s.newObject(key, value), prev, backend.PutOptions{})
	s.history.Put(key, value)
	return err
}

// showTransactions is the rule that shows the engine each transaction as one revision. A watch
// from a revision that lay in the future, and is inside a transaction now, has all of it.
func (s *storage[T]) showTransactions(_ context.Context, c *faulty.Call, proceed func()) {
	c.Prev = s.historyObject(c.Prev)
	c.WatchOptions.From = s.history.Before(c.WatchOptions.From)
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
func (s *storage[T]) wholeBatch(c *faulty.Call, proceed func()) {
	all := c.Batch
	for c.Err == nil && s.history.Shown(c.Batch.Through) != c.Batch.Through {
		proceed()
		all.Through, all.Events = c.Batch.Through, slices.Concat(all.Events, c.Batch.Events)
	}
	events := make([]store.Event, len(all.Events))
	for i, ev := range all.Events {
		ev.Revision, ev.Object, ev.Prev = s.history.Shown(ev.Revision), s.shownObject(ev.Object), s.shownObject(ev.Prev)
		events[i] = ev
	}
	all.Events = events
	c.Batch = all
}

// shownObject returns an object of storage with the revisions that the engine sees, nil for nil.
func (s *storage[T]) shownObject(o *store.Object) *store.Object {
	if o == nil {
		return nil
	}
	return s.withRevisions(o, s.history.Shown(o.Revision), s.history.Shown(o.Created))
}

// historyObject returns an object of the engine with the revisions that storage has, nil for nil.
func (s *storage[T]) historyObject(o *store.Object) *store.Object {
	if o == nil {
		return nil
	}
	return s.withRevisions(o, s.history.RevisionOf(o.Key, o.Revision), s.history.RevisionOf(o.Key, o.Created))
}

// withRevisions returns the object with the given revisions: o itself if it has them, otherwise a
// copy.
func (s *storage[T]) withRevisions(o *store.Object, revision, created store.Revision) *store.Object {
	if o.Revision == revision && o.Created == created {
		return o
	}
	o = s.schema.Clone(o)
	o.Revision, o.Created = revision, created
	return o
}

// historyObject returns an object that the engine has shown with the revisions that the history has,
// nil for nil.
func (w *World[T]) historyObject(o *engine.Object[T]) *engine.Object[T] {
	if o == nil {
		return nil
	}
	revision, created := w.history().RevisionOf(o.Key, o.Revision), w.history().RevisionOf(o.Key, o.Created)
	if o.Revision == revision && o.Created == created {
		return o
	}
	own := *o
	own.Revision, own.Created = revision, created
	return &own
}

// historyEvent is historyObject for an event. A bookmark keeps its revision, since it stands for all
// changes of a transaction.
func (w *World[T]) historyEvent(ev engine.Event[T]) engine.Event[T] {
	if ev.Type != store.Bookmark {
		ev.Revision = w.history().RevisionOf(ev.Key(), ev.Revision)
	}
	ev.Object, ev.Prev = w.historyObject(ev.Object), w.historyObject(ev.Prev)
	return ev
}

// historyObjects is historyObject for a list.
func (w *World[T]) historyObjects(objects []*engine.Object[T]) []*engine.Object[T] {
	all := make([]*engine.Object[T], len(objects))
	for i, o := range objects {
		all[i] = w.historyObject(o)
	}
	return all
}
