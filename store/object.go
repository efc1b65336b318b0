package store

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/labels"
)

// Revision is the position of a change in the order of all changes of one
// storage. Later changes have larger revisions. Zero means that there is none:
// no object has it and no event carries it.
type Revision uint64

// String prints the revision as a decimal number.
func (r Revision) String() string { return strconv.FormatUint(uint64(r), 10) }

// Object is a stored value's metadata: the header of a larger struct that ends
// with the value itself, whose type only the [Schema] has. So everything below
// the typed façade is compiled once, for objects of all types, and a value costs
// no allocation of its own. [As] converts the header to the whole.
//
// An object is immutable once it has been written: caches, events and readers
// all share one by pointer. It must not be copied by value, which would leave
// the value behind: [Schema.Clone] copies the whole.
type Object struct {
	// Key names the object; at most one object has it at a time.
	Key string
	// Revision is that of the write that made this state. In the object of a
	// Deleted event it is that of the deletion.
	Revision Revision
	// Created is the revision at which the key was created. Together with Key it
	// is the object's identity: an object deleted and created again under the
	// same key has another one.
	Created Revision
	// Labels are what label selectors match on, taken from the value once when it
	// was written.
	Labels labels.Set
	// Fields are what field selectors match on: a value for each of the schema's
	// [Columns], in their order, taken once when the value was written. A column
	// beyond the end is "".
	Fields []string
	// Written is when storage committed this state, by storage's clock.
	Written time.Time
	// Expires is when storage deletes the object by itself; the zero time means
	// never.
	Expires time.Time
}

// Field returns the value of a column, "" beyond the end.
func (o *Object) Field(column int) string {
	if column < len(o.Fields) {
		return o.Fields[column]
	}
	return ""
}

// ShareAttributes makes o share the key, labels and fields of prev, the state that
// it replaces, where they are equal. Most updates change none of them, so a
// history of updates holds one set, which [SharesAttributes] detects. Backends
// call it before they publish o; a nil prev shares nothing.
func ShareAttributes(o, prev *Object) {
	if prev == nil {
		return
	}
	if o.Key == prev.Key {
		o.Key = prev.Key
	}
	if !sameMap(o.Labels, prev.Labels) && maps.Equal(o.Labels, prev.Labels) {
		o.Labels = prev.Labels
	}
	if !sameSlice(o.Fields, prev.Fields) && slices.Equal(o.Fields, prev.Fields) {
		o.Fields = prev.Fields
	}
}

// SharesAttributes reports whether a and b share the same labels and fields, by
// comparing addresses. False does not mean that they differ.
func SharesAttributes(a, b *Object) bool {
	return sameSlice(a.Fields, b.Fields) && sameMap(a.Labels, b.Labels)
}

// sameMap reports whether a and b are the same map, or both nil.
func sameMap(a, b labels.Set) bool {
	return reflect.ValueOf(a).UnsafePointer() == reflect.ValueOf(b).UnsafePointer()
}

// sameSlice reports whether a and b are the same part of the same array.
func sameSlice(a, b []string) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
