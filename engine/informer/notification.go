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

// Deleted is what is known of an object that is gone. Last is its last state as
// the informer knew it, with the revision of the deletion.
type Deleted[T any] = queue.Deleted[*engine.Object[T]]

// Cause says why a handler is told something.
type Cause uint8

const (
	// Change: the source said that it happened.
	Change Cause = iota + 1
	// Initial: the object is in the source's first list.
	Initial
	// Replay: the object was there when the handler was added.
	Replay
	// Relist: found by comparing what was known with a later list, or, for a
	// handler that fell behind under [Resnapshot], with the newest state.
	Relist
	// Resync: nothing happened; the handler asked to be told from time to time.
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

// Notification is one thing that a handler is told.
type Notification[T any] struct {
	// Type is [store.Added], [store.Modified] or [store.Deleted].
	Type  store.EventType
	Cause Cause
	// Stale: the deletion was not seen happening, so Old may not be the last
	// state that the object had.
	Stale bool
	// Old is what this handler was told of the object before; nil for Added. On
	// a [Resync] it is Object itself.
	Old *Object[T]
	// Object is the object now; for Deleted its last state with the revision of
	// the deletion, or a bound of it if Stale.
	Object *Object[T]
}

// Key returns the key of the object.
func (n Notification[T]) Key() string { return n.Object.Key }

// InInitialList reports whether the object is part of the state that the handler
// started with.
func (n Notification[T]) InInitialList() bool { return n.Cause == Initial || n.Cause == Replay }

// Deleted returns what a deletion tells; only for Type Deleted.
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
