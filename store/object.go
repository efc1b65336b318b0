package store

import (
	"maps"
	"reflect"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// Revision is the position of a change in the order of all changes of one
// storage. Later changes have larger revisions. Zero means that there is none:
// no object has it and no event carries it.
type Revision uint64

// String prints the revision as a decimal number.
func (r Revision) String() string { return strconv.FormatUint(uint64(r), 10) }

// Object is a stored value and what storage knows of it. It is immutable once
// it has been written: caches, events and readers all share one Object by
// pointer, so neither it nor anything its Value points to may be changed.
type Object[T any] struct {
	// Key names the object; at most one object has it at a time.
	Key string
	// Value is the user's value.
	Value T
	// Revision is that of the write that made this state. In the object of a
	// Deleted event it is that of the deletion.
	Revision Revision
	// Created is the revision at which the key came to be. Together with Key it
	// is the object's identity: an object deleted and created again under the
	// same key has another one.
	Created Revision
	// Labels and Fields are what selectors match on, taken from Value once when
	// it was written.
	Labels labels.Set
	Fields fields.Set
	// Written is when storage committed this state, by storage's clock.
	Written time.Time
	// Expires is when storage deletes the object by itself; the zero time means
	// never.
	Expires time.Time
}

// Gone returns a copy of o as the object of its deletion at rev.
func (o *Object[T]) Gone(rev Revision, at time.Time) *Object[T] {
	gone := *o
	gone.Revision, gone.Written = rev, at
	return &gone
}

// ShareAttributes makes o hold the very label and field sets of prev, the state
// that it replaces, where its own are equal. Most updates change neither, so
// that a history of them holds one set and not many, and
// [Object.SharesAttributes] knows it. Backends call it before they publish o; a
// nil prev shares nothing.
func (o *Object[T]) ShareAttributes(prev *Object[T]) {
	if prev == nil {
		return
	}
	if !identical(o.Labels, prev.Labels) && maps.Equal(o.Labels, prev.Labels) {
		o.Labels = prev.Labels
	}
	if !identical(o.Fields, prev.Fields) && maps.Equal(o.Fields, prev.Fields) {
		o.Fields = prev.Fields
	}
}

// SharesAttributes reports whether o and other hold the very same sets, so that
// what is true of one's labels and fields is true of the other's. It costs
// nothing. False does not say that they differ.
func (o *Object[T]) SharesAttributes(other *Object[T]) bool {
	return identical(o.Labels, other.Labels) && identical(o.Fields, other.Fields)
}

// identical reports whether a and b are the same map, or both nil.
func identical[M ~map[string]string](a, b M) bool {
	return reflect.ValueOf(a).UnsafePointer() == reflect.ValueOf(b).UnsafePointer()
}

// Schema tells how to read a T. Only Key is required. The functions must be
// pure, must not keep or change the value, and may be called from any
// goroutine.
type Schema[T any] struct {
	// Key returns the object's key; see [ValidateKey] for what is allowed.
	Key func(T) string
	// Labels and Fields return the attributes that selectors match on. A nil
	// function means that the type has none.
	Labels func(T) labels.Set
	Fields func(T) fields.Set
	// Size estimates the bytes that a value holds, for the window's byte bound.
	// Nil means [DefaultSize] for every value.
	Size func(T) int
	// Equal reports whether two values are the same, so that an update that
	// changes nothing writes nothing. Nil means [reflect.DeepEqual].
	Equal func(a, b T) bool
}

// DefaultSize is the estimate in bytes for a value whose Schema has no Size:
// a small struct with a few strings. Getting it wrong only shifts how many
// events fit the window's byte bound.
const DefaultSize = 256

// Describe fills o's labels and fields from its value.
func (s *Schema[T]) Describe(o *Object[T]) {
	if s.Labels != nil {
		o.Labels = s.Labels(o.Value)
	}
	if s.Fields != nil {
		o.Fields = s.Fields(o.Value)
	}
}

// SizeOf estimates the bytes that o's value holds.
func (s *Schema[T]) SizeOf(o *Object[T]) int {
	if o == nil {
		return 0
	}
	if s.Size == nil {
		return DefaultSize
	}
	return s.Size(o.Value)
}

// Same reports whether a and b are equal by the schema.
func (s *Schema[T]) Same(a, b T) bool {
	if s.Equal != nil {
		return s.Equal(a, b)
	}
	return reflect.DeepEqual(a, b)
}
