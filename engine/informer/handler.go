package informer

import (
	"fmt"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/queue"
	"github.com/watchmill/watchmill/store"
)

// Object is a stored value with its key and revision. It is immutable and
// shared: to change one, write a changed copy to the source.
type Object[T any] = engine.Object[T]

// Deleted is a deleted object. Last is its last state known to the informer, with
// the revision of the deletion. A value that carries its revision, by engine.Config.SetRevision,
// has that too, unless there is a Transform or the deletion was found by comparing states.
type Deleted[T any] = queue.Deleted[*engine.Object[T]]

// EventHandler is called for changes of an informer's objects, one call at a time,
// in order. It may block: see [Policy] for the consequences. Objects are shared and
// must not be changed. It never gains methods.
type EventHandler[T any] interface {
	// OnAdd is called for an object that is new to the handler. isInInitialList
	// says that it is part of the state that the handler starts with.
	OnAdd(object *Object[T], isInInitialList bool)
	// OnUpdate is called for a change; on a resync both are the same object.
	OnUpdate(old, object *Object[T])
	// OnDelete is called for a deleted object. If the handler was slow, Last may differ from
	// the object of its previous call, since [Merge] leaves out what was in between.
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

// FilteringHandler is an [EventHandler] that passes on objects that Filter accepts.
// An update that changes the result of Filter becomes an addition or a deletion. A deletion is
// passed on if Filter accepts the object of the previous notification; in a handler that calls
// OnDelete itself, if it accepts the last state. A nil Filter accepts everything; a nil
// Handler is refused when it is added.
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

// OnUpdate passes on an update, or the addition or deletion that it is for the
// filter.
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

// OnDelete passes on the deletion of objects that matched, or whose last state is
// unknown.
func (f FilteringHandler[T]) OnDelete(gone Deleted[T]) {
	if !gone.Known || f.matches(gone.Last) {
		f.Handler.OnDelete(gone)
	}
}

// isNil reports whether a handler, or one that it passes objects on to, is nil.
func isNil[T any](handler EventHandler[T]) bool {
	for f, is := filtering(handler); is; f, is = filtering(handler) {
		handler = f.Handler
	}
	return handler == nil
}

// filtering returns a handler as a FilteringHandler, if it is one. A nil pointer is one of a nil
// handler.
func filtering[T any](handler EventHandler[T]) (f FilteringHandler[T], is bool) {
	switch h := handler.(type) {
	case FilteringHandler[T]:
		return h, true
	case *FilteringHandler[T]:
		if h != nil {
			f = *h
		}
		return f, true
	}
	return f, false
}

func (f FilteringHandler[T]) matches(object *Object[T]) bool {
	return f.Filter == nil || f.Filter(object)
}

// Cause says why a handler gets a notification.
type Cause uint8

const (
	// Change: an event of the source's watch.
	Change Cause = iota + 1
	// Initial: the object is in the source's first list.
	Initial
	// Replay: the object was there when the handler was added.
	Replay
	// Relist: found by comparing the known state with a later list, or, for a
	// handler that fell behind under [Resnapshot], with the newest state.
	Relist
	// Resync: no change; a periodic repetition that the handler asked for.
	Resync
)

// String returns the cause's name in lower case.
func (c Cause) String() string {
	names := [...]string{Change: "change", Initial: "initial", Replay: "replay", Relist: "relist", Resync: "resync"}
	if int(c) < len(names) && c > 0 {
		return names[c]
	}
	return fmt.Sprintf("Cause(%d)", uint8(c))
}

// Notification is one change of one object for a handler.
type Notification[T any] struct {
	// Type is [store.Added], [store.Modified] or [store.Deleted].
	Type  store.EventType
	Cause Cause
	// Stale: the deletion was found by comparing states, so Old may not be the
	// last state that the object had.
	Stale bool
	// Old is the object in the handler's last notification of it; nil for Added.
	// On a [Resync] it is Object itself.
	Old *Object[T]
	// Object is the object now; for Deleted its last state with the revision of
	// the deletion, or a bound of it if Stale.
	Object *Object[T]
}

// Key returns the key of the object.
func (n Notification[T]) Key() string { return n.Object.Key }

// InInitialList reports whether the object is part of the state that the handler
// starts with.
func (n Notification[T]) InInitialList() bool { return n.Cause == Initial || n.Cause == Replay }

// Deleted returns the object of a deletion; only for Type Deleted.
func (n Notification[T]) Deleted() Deleted[T] {
	return Deleted[T]{Key: n.Object.Key, Last: n.Object, Known: true, Stale: n.Stale}
}

// String prints the notification for people: type, key, revision and cause.
func (n Notification[T]) String() string {
	return notification{n.Type, n.Cause, n.Stale, store.Header(n.Old), store.Header(n.Object)}.String()
}

// notification is a [Notification] as the core sees it.
type notification struct {
	Type        store.EventType
	Cause       Cause
	Stale       bool
	Old, Object *store.Object
}

func typedNotification[T any](n notification) Notification[T] {
	return Notification[T]{n.Type, n.Cause, n.Stale, typed[T](n.Old), typed[T](n.Object)}
}

// notify calls the event handler's method for a notification.
func notify[T any](handler EventHandler[T], n notification) {
	object := typed[T](n.Object)
	switch n.Type {
	case store.Added:
		handler.OnAdd(object, n.Cause == Initial || n.Cause == Replay)
	case store.Modified:
		handler.OnUpdate(typed[T](n.Old), object)
	case store.Deleted:
		notifyDeleted(handler, typed[T](n.Old), Deleted[T]{Key: object.Key, Last: object, Known: true, Stale: n.Stale})
	}
}

// notifyDeleted calls the handler's OnDelete, or, if it is a filter, that of the handler behind,
// if the filter accepts the object of the handler's previous notification: if changes were merged,
// the object may have changed from that before it was deleted.
func notifyDeleted[T any](handler EventHandler[T], known *Object[T], gone Deleted[T]) {
	for f, is := filtering(handler); is; f, is = filtering(handler) {
		if !f.matches(known) {
			return
		}
		handler = f.Handler
	}
	handler.OnDelete(gone)
}

func (n notification) key() string { return n.Object.Key }

// String is that of [Notification].
func (n notification) String() string {
	text := fmt.Sprintf("%v %s@%d %v", n.Type, n.Object.Key, n.Object.Revision, n.Cause)
	if n.Stale {
		text += " stale"
	}
	return text
}

func added(o *store.Object, cause Cause) notification {
	return notification{Type: store.Added, Cause: cause, Object: o}
}

func resynced(o *store.Object) notification {
	return notification{Type: store.Modified, Cause: Resync, Old: o, Object: o}
}
