package world

import (
	"context"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/engine/objectcache"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// seams are the points where messages pass between the engine and its surroundings:
// storage, the executor, and consumers. The tests of this package put a fault into one of
// them, which the judge does not record, to prove that the judge finds it. The engine has
// no code for them. All are nil in an ordinary world.
//
//	storage ──[storage]──▶ engine ─[deliver, endError, resumeRevision]─▶ consumer ──▶ judge
//	                       │  ▲  ▲                                 │
//	                  [turn]  │  └─[ask, start, page, refuse, drain, stop]─┘
//	                       ▼  │
//	                     executor
//
// A message between two actors of the engine can be lost or delayed only together with the
// turn that receives it. The delay of a registration between actors does no harm, since its
// position is fixed by the request; so the tests delay the consumer's request instead.
type seams[T any] struct {
	// config changes the configuration of the engine.
	config func(*engine.Config[T])
	// storage returns the backend of the engine.
	storage func(*World[T]) backend.Backend
	// uncached returns the backend of the engine without a cache, instead of its argument.
	uncached func(backend.Backend) backend.Backend
	// start returns the options with which the engine starts a watch that was requested
	// with others.
	start func(*World[T], engine.WatchOptions) engine.WatchOptions
	// page returns the continue token with which the engine lists the next page, instead of
	// its argument. After a restart there is no paging.
	page func(w *World[T], p *paging[T], token string) string
	// refuse returns the error with which a read or a watch of that name fails, without being
	// made; nil for none. The names of pages after the first end with ", continued",
	// and those of watches that begin with the state have "state of" before them.
	refuse func(w *World[T], name string) error
	// ask makes the call that requests a watch. The function that it returns is called
	// when the watch has begun, and may change the record of the request.
	ask func(w *World[T], r *watch[T], call func()) (adjustRecord func())
	// turn reports whether a turn of one of the engine's actors is lost.
	turn func(*World[T], actors.Task) bool
	// deliver returns the events that the consumer of a watch receives for ev.
	deliver func(r *watch[T], ev engine.Event[T]) []engine.Event[T]
	// policy returns the policy of a Processor, instead of its argument, and processed what its
	// function returns.
	policy    func(engine.ErrorPolicy) engine.ErrorPolicy
	processed func(error) error
	// drain drains an engine, perhaps again.
	drain func(context.Context, *World[T], *engine.Engine[T]) error
	// stop reports whether a consumer's Stop of its watch is lost.
	stop func(r *watch[T]) bool
	// cancel reports whether the end of a context is lost.
	cancel func() bool
	// notify returns the notifications that the informer's handler receives for one.
	notify func(*World[T], informer.Notification[T]) []informer.Notification[T]
	// source returns the source of the informer and the object cache, instead of its
	// argument.
	source func(backend.ListerWatcher) backend.ListerWatcher
	// snapshot returns what the informer shows, shown the objects of that, and fetched what a
	// reference returns.
	snapshot func(informer.Snapshot[T]) informer.Snapshot[T]
	shown    func(*World[T], []*engine.Object[T]) []*engine.Object[T]
	// indexed returns the objects that the informer shows by an index.
	indexed func(*World[T], []*engine.Object[T]) []*engine.Object[T]
	fetched func(*objectcache.Ref[T], *engine.Object[T]) *engine.Object[T]
	// resumeRevision returns the revision that a watch at rev reports.
	resumeRevision func(r *watch[T], rev store.Revision) store.Revision
	// revisionOf returns the revision for which an engine takes a checkpoint, or its error.
	revisionOf func(engine.Checkpoint) (store.Revision, error)
	// list returns the options of a list that was requested with others.
	list func(*World[T], engine.ListOptions) engine.ListOptions
	// toldEnds returns the reasons with which OnEnd was called for a watch, instead of its argument.
	toldEnds func([]error) []error
	// lost returns the number that a watch which has lost n events reports.
	lost func(n uint64) uint64
	// sparesUncached reports whether a break of storage's watches leaves out those of the
	// engine without a cache.
	sparesUncached func() bool
	// restart returns the options of the storage of judgeRestart, instead of its argument.
	restart func(memory.Options) memory.Options
	// endError returns the error that the consumer of a watch receives when the watch has
	// ended for err; nil for none.
	endError func(w *World[T], r *watch[T], err error) error
}

// refuse returns the error with which a call of that name fails; nil if it is to be made.
func (w *World[T]) refuse(name string) error {
	if w.seams.refuse == nil {
		return nil
	}
	return w.seams.refuse(w, name)
}

// ask makes the call that requests a watch, through the seam if there is one.
func (w *World[T]) ask(r *watch[T], call func()) (adjustRecord func()) {
	if w.seams.ask == nil {
		call()
		return func() {}
	}
	return w.seams.ask(w, r, call)
}

// lost returns how many events the watch reports as left out.
func (w *World[T]) lost(r *watch[T]) uint64 {
	n := r.handle.Lost()
	if w.seams.lost != nil {
		n = w.seams.lost(n)
	}
	return n
}

// endError returns the error that the consumer of a watch receives when the watch has ended for
// err.
func (w *World[T]) endError(r *watch[T], err error) error {
	if w.seams.endError == nil {
		return err
	}
	return w.seams.endError(w, r, err)
}
