package engine

import (
	"math"
	"reflect"
	"slices"
	"time"
	"unsafe"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/store"
)

// Object is a stored value with its metadata. It is immutable once
// it has been written: caches, events and readers all share one Object by
// pointer, so neither it nor anything its Value points to may be changed.
type Object[T any] struct {
	// Key names the object; at most one object has it at a time.
	Key string
	// Revision is that of the write that made this state. In the object of a
	// Deleted event it is that of the deletion.
	Revision Revision
	// Created is the revision at which the key was created. Together with Key it
	// is the object's identity: an object deleted and created again under the
	// same key has another one.
	Created Revision
	// Labels are what label selectors match on, taken from Value once when it was
	// written.
	Labels Labels
	// Fields are what field selectors match on: a value for each of
	// [Config].Fields, sorted by name, taken from Value once when it was written.
	Fields []string
	// Written is when storage committed this state, by storage's clock.
	Written time.Time
	// Expires is when storage deletes the object by itself; the zero time means
	// never.
	Expires time.Time
	// Value is the user's value.
	Value T
}

// Event is one change at one revision, or a bookmark. It is four words: pass
// it by value. The objects it points to are shared and immutable.
type Event[T any] struct {
	Type  EventType
	Marks Marks
	// Revision is the position of the event in storage's order.
	Revision Revision
	// Object is the state after the event; for Deleted the last state before
	// it, carrying the deletion's revision; for a Bookmark nil.
	Object *Object[T]
	// Prev is the state before a Modified or Deleted event, nil otherwise.
	Prev *Object[T]
}

// Key returns the key of the event's object, or "" for a bookmark.
func (e Event[T]) Key() string {
	if e.Object == nil {
		return ""
	}
	return e.Object.Key
}

// Is reports whether the event has all the given marks.
func (e Event[T]) Is(m Marks) bool { return e.Marks&m == m }

// String prints the event for people: type, key and revision, and the marks.
func (e Event[T]) String() string { return untypedEvent(e).String() }

// List is one page of objects, in key order.
type List[T any] struct {
	// Revision is that of the state: watch from here to continue.
	Revision Revision
	// Items is never nil.
	Items []*Object[T]
	// Continue is the token of the next page; "" on the last.
	Continue string
	// Remaining is the number of objects after this page, -1 if that is unknown, as
	// with a selector.
	Remaining int
	// Timeline is the history that Revision belongs to.
	Timeline Timeline
}

// The core uses an Object as its header, a [store.Object], and an Event as a
// [store.Event]; see package store for why that is sound. The constants do not compile
// if the layouts differ.
const (
	_ = -uint(unsafe.Offsetof(Object[byte]{}.Key) ^ unsafe.Offsetof(store.Object{}.Key))
	_ = -uint(unsafe.Offsetof(Object[byte]{}.Revision) ^ unsafe.Offsetof(store.Object{}.Revision))
	_ = -uint(unsafe.Offsetof(Object[byte]{}.Created) ^ unsafe.Offsetof(store.Object{}.Created))
	_ = -uint(unsafe.Offsetof(Object[byte]{}.Labels) ^ unsafe.Offsetof(store.Object{}.Labels))
	_ = -uint(unsafe.Offsetof(Object[byte]{}.Fields) ^ unsafe.Offsetof(store.Object{}.Fields))
	_ = -uint(unsafe.Offsetof(Object[byte]{}.Written) ^ unsafe.Offsetof(store.Object{}.Written))
	_ = -uint(unsafe.Offsetof(Object[byte]{}.Expires) ^ unsafe.Offsetof(store.Object{}.Expires))
	_ = -uint(unsafe.Offsetof(Object[byte]{}.Value) - unsafe.Sizeof(store.Object{}))
	_ = -uint(unsafe.Offsetof(Event[byte]{}.Type) ^ unsafe.Offsetof(store.Event{}.Type))
	_ = -uint(unsafe.Offsetof(Event[byte]{}.Marks) ^ unsafe.Offsetof(store.Event{}.Marks))
	_ = -uint(unsafe.Offsetof(Event[byte]{}.Revision) ^ unsafe.Offsetof(store.Event{}.Revision))
	_ = -uint(unsafe.Offsetof(Event[byte]{}.Object) ^ unsafe.Offsetof(store.Event{}.Object))
	_ = -uint(unsafe.Offsetof(Event[byte]{}.Prev) ^ unsafe.Offsetof(store.Event{}.Prev))
	_ = -uint(unsafe.Sizeof(Event[byte]{}) ^ unsafe.Sizeof(store.Event{}))
)

func typed[T any](o *store.Object) *Object[T] { return store.As[Object[T]](o) }

func typedEvent[T any](ev store.Event) Event[T] {
	return Event[T]{ev.Type, ev.Marks, ev.Revision, typed[T](ev.Object), typed[T](ev.Prev)}
}

func untypedEvent[T any](ev Event[T]) store.Event {
	return store.Event{Type: ev.Type, Marks: ev.Marks, Revision: ev.Revision, Object: store.Header(ev.Object), Prev: store.Header(ev.Prev)}
}

// draft returns a new object of which only the value is filled in. It copies the value once, from where that is.
func draft[T any](value *T) *store.Object {
	o := new(Object[T])
	o.Value = *value
	return store.Header(o)
}

// Schema returns the functions for T that a backend's constructor needs: to encode
// objects, and for their labels, fields and sizes.
func (c Config[T]) Schema() store.Schema {
	d := description[T]{labelsOf: c.Labels}
	d.labelNames = store.LabelNames(sorted(c.LabelValues, &d.labels))
	return store.Schema{
		Type:   reflect.TypeFor[T](),
		Fields: sorted(c.Fields, &d.fields),
		New:    func() *store.Object { return store.Header(new(Object[T])) },
		Clone: func(o *store.Object) *store.Object {
			whole := *typed[T](o)
			return store.Header(&whole)
		},
		Pointer:  func(o *store.Object) any { return &typed[T](o).Value },
		Key:      keyOf(c.Key),
		Describe: func(o *store.Object) { describe(typed[T](o), &d) },
		Size:     sizeOf(c.Size, c.Labels, len(c.LabelValues) > 0),
		Equal:    equalOf(c.Equal),

		SetRevision: setRevisionOf(c.SetRevision),
	}
}

// keyOf returns the function that takes an object's key from its value or, without
// Config.Key, from its header, where the caller of a write has put it.
func keyOf[T any](key func(T) string) func(*store.Object) string {
	if key == nil {
		return func(o *store.Object) string { return o.Key }
	}
	return func(o *store.Object) string { return key(typed[T](o).Value) }
}

// setRevisionOf returns Config.SetRevision without its type.
func setRevisionOf[T any](set func(T, Revision) T) func(*store.Object, Revision) {
	if set == nil {
		return nil
	}
	return func(o *store.Object, rev Revision) {
		whole := typed[T](o)
		whole.Value = set(whole.Value, rev)
	}
}

// description has the functions that labels and fields come from, in the order of their
// names.
type description[T any] struct {
	labelsOf       func(T) labels.Set
	labelNames     store.LabelNames
	labels, fields []func(T) string
}

// sorted returns the names of the functions in order, and the functions in getters.
func sorted[T any](functions map[string]func(T) string, getters *[]func(T) string) store.Columns {
	names := make([]string, 0, len(functions))
	for name := range functions {
		names = append(names, name)
	}
	columns := store.NewColumns(names...)
	for _, name := range columns {
		*getters = append(*getters, functions[name])
	}
	return columns
}

// describe fills in o's labels and fields. Those that o has, of the state that it replaces,
// stay if they are right.
func describe[T any](o *Object[T], d *description[T]) {
	values := make([]string, 0, 16) // on the stack, for as many as most types have
	if d.labelsOf != nil {
		o.Labels = store.LabelsOf(d.labelsOf(o.Value))
	} else {
		o.Labels = d.labelNames.Labels(appendValues(values, o, d.labels), o.Labels)
	}
	o.Fields = keptFields(appendValues(values, o, d.fields), o.Fields)
}

// appendValues appends the getters' values for o to values.
func appendValues[T any](values []string, o *Object[T], getters []func(T) string) []string {
	for _, get := range getters {
		values = append(values, get(o.Value))
	}
	return values
}

// keptFields returns the fields with these values: before, if it has the same ones. Otherwise
// each that is the same is kept from before.
func keptFields(values, before []string) []string {
	if slices.Equal(values, before) {
		return before
	}
	kept := slices.Clone(values)
	store.ShareStrings(kept, before)
	return kept
}

// sizeOf returns Config.Size without its type, or an estimate, and adds the size of
// labels that are not a part of the value, which those of Config.LabelValues never
// are.
func sizeOf[T any](size func(T) int, labelsOf func(T) labels.Set, labelValues bool) func(*store.Object) int {
	ofValue := func(o *store.Object) int { return size(typed[T](o).Value) }
	if size == nil {
		estimate := store.SizeOf(reflect.TypeFor[T]())
		ofValue = func(o *store.Object) int { return estimate(&typed[T](o).Value) }
	}
	var ofLabels func(*store.Object) int
	switch {
	case labelsOf != nil:
		ofLabels = store.SizeOfLabels(func(o *store.Object) labels.Set { return labelsOf(typed[T](o).Value) })
	case labelValues:
		ofLabels = store.SizeOfLabels(nil)
	default:
		return ofValue
	}
	return func(o *store.Object) int {
		n := ofLabels(o)
		return n + min(ofValue(o), math.MaxInt-n)
	}
}

// equalOf returns Config.Equal without its type, or a comparison of everything.
func equalOf[T any](equal func(a, b T) bool) func(a, b *store.Object) bool {
	if equal == nil {
		// By pointer, since values would be copied to the heap.
		return func(a, b *store.Object) bool { return reflect.DeepEqual(&typed[T](a).Value, &typed[T](b).Value) }
	}
	return func(a, b *store.Object) bool { return equal(typed[T](a).Value, typed[T](b).Value) }
}

// typeName is the default name of an engine of T.
func typeName[T any]() string { return reflect.TypeFor[T]().String() }
