package world

import (
	"math/rand/v2"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/explore/script"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
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
	if err := w.storage.Transact(values, func() bool { return draw.IntN(3) == 0 }); err != nil {
		w.fail(judge.Failed(judge.Refusals, s.Do.String(), "%v", err))
		return
	}
	w.trace.Result(w.newest(), nil)
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
