package explore

import (
	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/engine/objectcache"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// seams are where messages pass between the engine and what is around it:
// storage, the executor, and consumers. The tests of this package put a fault
// into one of them, behind the judge's back, to see that it is found; nothing in
// the engine knows of them. All are nil in a world that is whole.
//
//	storage ──[storage]──▶ engine ─[deliver, told, stands]─▶ consumer ──▶ judge
//	                       │  ▲  ▲                             │
//	                  [turn]  │  └──────[ask, start, stop]──────┘
//	                       ▼  │
//	                     executor
//
// A message between two actors of the engine can be lost or late only with the
// turn that takes it. A registration that is late between them does no harm: its
// position was fixed when it was asked for. So it is the consumer's request that
// comes late.
type seams[T any] struct {
	// storage returns what the engine takes for storage.
	storage func(*World[T]) backend.Backend
	// direct returns what the engine without a cache takes for storage.
	direct func(backend.Backend) backend.Backend
	// start returns what is asked of the engine for a watch with the options.
	start func(*World[T], engine.WatchOptions) engine.WatchOptions
	// ask makes the call that asks for a watch. What it returns is called when
	// the watch has begun, to say what its consumer believes.
	ask func(w *World[T], r *watch[T], call func()) (believe func())
	// turn reports that a turn of one of the engine's actors is lost.
	turn func(*World[T], actors.Task) bool
	// deliver returns what the consumer of a watch is given for ev.
	deliver func(r *watch[T], ev engine.Event[T]) []engine.Event[T]
	// stop reports that a consumer's Stop of its watch is lost.
	stop func(r *watch[T]) bool
	// leave reports that the end of a context is lost.
	leave func() bool
	// notify reports whether the handler of the informer is told of a notification.
	notify func(informer.Notification[T]) bool
	// source returns what the informer and the object cache take for the engine's.
	source func(backend.ListerWatcher) backend.ListerWatcher
	// snapshot returns what the informer shows, fetched what a reference does.
	snapshot func(informer.Snapshot[T]) informer.Snapshot[T]
	fetched  func(*objectcache.Ref[T], *engine.Object[T]) *engine.Object[T]
	// stands returns what a watch that stands at rev says of that.
	stands func(r *watch[T], rev store.Revision) store.Revision
	// lost returns what a watch that has lost n events says of that.
	lost func(n uint64) uint64
	// unbroken reports that a watch without a cache is not ended when storage's are.
	unbroken func() bool
	// life returns the options of storage in another life.
	life func(memory.Options) memory.Options
	// told returns what the consumer of a watch that has ended for err is told,
	// nil for nothing.
	told func(r *watch[T], err error) error
}

// ask makes the call that asks for a watch.
func (w *World[T]) ask(r *watch[T], call func()) (believe func()) {
	if w.seams.ask == nil {
		call()
		return func() {}
	}
	return w.seams.ask(w, r, call)
}

// lost returns how many events the watch says that it has left out.
func (w *World[T]) lost(r *watch[T]) uint64 {
	n := r.handle.Lost()
	if w.seams.lost != nil {
		n = w.seams.lost(n)
	}
	return n
}

// told returns what the consumer of a watch that has ended for err is told.
func (w *World[T]) told(r *watch[T], err error) error {
	if w.seams.told == nil {
		return err
	}
	return w.seams.told(r, err)
}
