package enginetest

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/watchmill/watchmill/engine"
)

// Want describes an event that is expected. Make one with [Added], [Keyed] and
// their like, and narrow it with its methods, which return a copy.
type Want struct {
	kind  engine.EventType
	marks engine.Marks
	at    engine.Revision
	key   string
	value any // what cmp.Equal takes; nil for any
}

// Added expects an object that came to be with this value, or came to match.
// Values are compared deeply, unexported fields too, or by their type's method
// Equal, as cmp.Equal does.
func Added(value any) Want { return Want{kind: engine.Added, value: value} }

// Modified expects an object that changed to this value.
func Modified(value any) Want { return Want{kind: engine.Modified, value: value} }

// Deleted expects the end of an object whose last value was this.
func Deleted(value any) Want { return Want{kind: engine.Deleted, value: value} }

// Emitted expects a value that passes through.
func Emitted(value any) Want { return Want{kind: engine.Emitted, value: value} }

// Bookmark expects a bookmark, whatever its marks.
func Bookmark() Want { return Want{kind: engine.Bookmark} }

// InitialEnd expects the bookmark that closes the initial state.
func InitialEnd() Want { return Bookmark().Marked(engine.InitialEnd) }

// Keyed expects an event of a type for the object under key, whatever its value.
func Keyed(kind engine.EventType, key string) Want { return Want{kind: kind, key: key} }

// Marked expects these marks also; the event may have others.
func (want Want) Marked(marks engine.Marks) Want {
	want.marks |= marks
	return want
}

// At expects this revision also.
func (want Want) At(rev engine.Revision) Want {
	want.at = rev
	return want
}

// String prints what is expected as events are printed.
func (want Want) String() string {
	text := want.kind.String()
	if want.key != "" {
		text += " " + want.key
	}
	if want.at != 0 {
		text += "@" + want.at.String()
	}
	// An event prints its marks; this one has nothing else.
	marked := engine.Event[struct{}]{Marks: want.marks}.String()
	if _, marks, ok := strings.Cut(marked, " "); ok {
		text += " " + marks
	}
	if want.value != nil {
		text += fmt.Sprintf(" %+v", want.value)
	}
	return text
}

// allFields has cmp look into unexported fields.
var allFields = cmp.Exporter(func(reflect.Type) bool { return true })

// matches reports whether ev is what is expected.
func matches[T any](want Want, ev engine.Event[T]) bool {
	return want.kind == ev.Type && ev.Is(want.marks) &&
		(want.at == 0 || want.at == ev.Revision) &&
		(want.key == "" || want.key == ev.Key()) &&
		(want.value == nil || ev.Object != nil && cmp.Equal(want.value, any(ev.Object.Value), allFields))
}

// mistaken says what is wrong with wants that no event of a T can meet.
func mistaken[T any](wants []Want) error {
	for _, want := range wants {
		if want.value == nil {
			continue
		}
		if _, ok := want.value.(T); !ok {
			return fmt.Errorf("%s is given a %T, but the watch is of %s", want.kind, want.value, reflect.TypeFor[T]())
		}
	}
	return nil
}

// show prints an event with its value.
func show[T any](ev engine.Event[T]) string {
	if ev.Object == nil {
		return ev.String()
	}
	return fmt.Sprintf("%s %+v", ev, ev.Object.Value)
}
