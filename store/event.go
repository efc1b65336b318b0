package store

import "fmt"

// EventType says what happened.
type EventType uint8

// The types of event. Added, Modified and Deleted are changes of state; the
// other two are not.
const (
	// Added: the object was created, or now matches the watcher's selector.
	Added EventType = iota + 1
	// Modified: the object changed and matched before and after.
	Modified
	// Deleted: the object is gone, or no longer matches. Object is its last
	// (matching) state with the revision of the change that ended it.
	Deleted
	// Bookmark: nothing happened, but everything up to Revision has been
	// delivered. It has no object.
	Bookmark
	// Emitted: a value passed through that is not state: no Get or List shows
	// it.
	Emitted
)

// String returns the type's name in upper case, as the field writes it.
func (t EventType) String() string {
	switch t {
	case Added:
		return "ADDED"
	case Modified:
		return "MODIFIED"
	case Deleted:
		return "DELETED"
	case Bookmark:
		return "BOOKMARK"
	case Emitted:
		return "EMITTED"
	}
	return fmt.Sprintf("EventType(%d)", uint8(t))
}

// Marks are properties of an event besides its type.
type Marks uint8

// The marks. An event may have several.
const (
	// Initial: part of the state that a watch starts with, not a change.
	Initial Marks = 1 << iota
	// InitialEnd: on a Bookmark, the initial state is complete.
	InitialEnd
	// Conflated: changes before this one to the same key were left out.
	Conflated
	// Synthetic: found by comparing states after a relist rather than seen
	// happening. A synthetic deletion's revision is a bound, not the true one.
	Synthetic
	// AfterGap: events before this one may be lost, and no other event shows that.
	//
	// The first Emitted after a relist has it, since the relist skipped revisions and lists
	// do not contain what was emitted. In a watch that conflates, the first Emitted after
	// what was left out has it, too. If no Conflated event shows what was left out, because
	// objects were created and deleted again, or changed out of the watch's selection and
	// back, then the first event of any type has it, even a bookmark.
	AfterGap
)

// Event is one change at one revision, or a bookmark. It is four words: pass
// it by value. The objects it points to are shared and immutable.
type Event struct {
	Type  EventType
	Marks Marks
	// Revision is the position of the event in storage's order.
	Revision Revision
	// Object is the state after the event; for Deleted the last state before
	// it, carrying the deletion's revision; for a Bookmark nil.
	Object *Object
	// Prev is the state before a Modified or Deleted event, nil otherwise.
	Prev *Object
}

// Key returns the key of the event's object, or "" for a bookmark.
func (e Event) Key() string {
	if e.Object == nil {
		return ""
	}
	return e.Object.Key
}

// Is reports whether the event has all the given marks.
func (e Event) Is(m Marks) bool { return e.Marks&m == m }

// String prints the event for people: type, key and revision, and the marks.
func (e Event) String() string {
	s := e.Type.String()
	if k := e.Key(); k != "" {
		s += " " + k
	}
	s += "@" + e.Revision.String()
	for _, m := range []struct {
		mark Marks
		name string
	}{{Initial, "initial"}, {InitialEnd, "initial-end"}, {Conflated, "conflated"}, {Synthetic, "synthetic"}, {AfterGap, "after-gap"}} {
		if e.Is(m.mark) {
			s += " " + m.name
		}
	}
	return s
}
