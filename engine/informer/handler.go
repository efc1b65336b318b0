package informer

import "github.com/watchmill/watchmill/store"

// EventHandler is told what happens to the objects of an informer, one thing at
// a time, in order. It may block: see [Policy] for what that means. Objects are
// shared and must not be changed.
type EventHandler[T any] interface {
	// OnAdd is told of an object that is new to the handler. isInInitialList
	// says that it is part of the state that the handler started with.
	OnAdd(object *Object[T], isInInitialList bool)
	// OnUpdate is told of a change; on a resync both are the same object.
	OnUpdate(old, object *Object[T])
	// OnDelete is told of an object that is gone.
	OnDelete(gone Deleted[T])
}

// HandlerFuncs is an [EventHandler] made of functions. Those that are nil are
// not called.
type HandlerFuncs[T any] struct {
	AddFunc    func(object *Object[T], isInInitialList bool)
	UpdateFunc func(old, object *Object[T])
	DeleteFunc func(gone Deleted[T])
}

// OnAdd calls AddFunc.
func (f HandlerFuncs[T]) OnAdd(object *Object[T], isInInitialList bool) {
	if f.AddFunc != nil {
		f.AddFunc(object, isInInitialList)
	}
}

// OnUpdate calls UpdateFunc.
func (f HandlerFuncs[T]) OnUpdate(old, object *Object[T]) {
	if f.UpdateFunc != nil {
		f.UpdateFunc(old, object)
	}
}

// OnDelete calls DeleteFunc.
func (f HandlerFuncs[T]) OnDelete(gone Deleted[T]) {
	if f.DeleteFunc != nil {
		f.DeleteFunc(gone)
	}
}

// FilteringHandler is an [EventHandler] that passes on what Filter lets through.
// An update that crosses the filter becomes an addition or a deletion. A nil
// Filter lets everything through.
type FilteringHandler[T any] struct {
	Filter  func(*Object[T]) bool
	Handler EventHandler[T]
}

// OnAdd passes on objects that match.
func (f FilteringHandler[T]) OnAdd(object *Object[T], isInInitialList bool) {
	if f.matches(object) {
		f.Handler.OnAdd(object, isInInitialList)
	}
}

// OnUpdate passes on an update as it looks to a handler that sees only objects
// that match.
func (f FilteringHandler[T]) OnUpdate(old, object *Object[T]) {
	before, now := f.matches(old), f.matches(object)
	switch {
	case before && now:
		f.Handler.OnUpdate(old, object)
	case now:
		f.Handler.OnAdd(object, false)
	case before:
		f.Handler.OnDelete(Deleted[T]{Key: old.Key, Last: old, Known: true})
	}
}

// OnDelete passes on the end of objects that matched, and of those of which
// nothing is known.
func (f FilteringHandler[T]) OnDelete(gone Deleted[T]) {
	if !gone.Known || f.matches(gone.Last) {
		f.Handler.OnDelete(gone)
	}
}

func (f FilteringHandler[T]) matches(object *Object[T]) bool {
	return f.Filter == nil || f.Filter(object)
}

// notify tells an event handler.
func notify[T any](handler EventHandler[T], n notification) {
	object, old := typed[T](n.Object), typed[T](n.Old)
	switch n.Type {
	case store.Added:
		handler.OnAdd(object, n.Cause == Initial || n.Cause == Replay)
	case store.Modified:
		handler.OnUpdate(old, object)
	case store.Deleted:
		handler.OnDelete(Deleted[T]{Key: object.Key, Last: object, Known: true, Stale: n.Stale})
	}
}
