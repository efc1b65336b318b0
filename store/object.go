package store

import (
	"fmt"
	"slices"
	"strconv"
	"time"
	"unsafe"
)

// Revision is the position of a change in the order of all changes of one
// storage. Later changes have larger revisions. Zero means that there is none:
// no object has it and no event carries it.
type Revision uint64

// String prints the revision as a decimal number.
func (r Revision) String() string { return strconv.FormatUint(uint64(r), 10) }

// Timeline is the history that a revision belongs to. Revisions of two timelines
// cannot be compared: the same one may have other content.
type Timeline struct {
	// StoreID identifies the storage; empty if unknown. Epoch is that of the cache.
	StoreID string
	Epoch   uint64
}

// String names the timeline.
func (t Timeline) String() string { return fmt.Sprintf("%s#%d", t.StoreID, t.Epoch) }

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
	Labels Labels
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
	if !o.Labels.shares(prev.Labels) && o.Labels.Equal(prev.Labels) {
		o.Labels = prev.Labels
	}
	if !sameSlice(o.Fields, prev.Fields) && slices.Equal(o.Fields, prev.Fields) {
		o.Fields = prev.Fields
	}
}

// SharesAttributes reports whether a and b share the same labels and fields, by
// comparing addresses. False does not mean that they differ.
func SharesAttributes(a, b *Object) bool {
	return sameSlice(a.Fields, b.Fields) && a.Labels.shares(b.Labels)
}

// ShareStrings replaces each of values that equals the one in the same place of before by that
// one, so that their text is held once.
func ShareStrings(values, before []string) {
	for i := range min(len(values), len(before)) {
		if values[i] == before[i] {
			values[i] = before[i]
		}
	}
}

// sameSlice reports whether a and b are the same part of the same array.
func sameSlice(a, b []string) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// BytesBeside estimates the bytes that o keeps alive and other does not: its header, its value by
// sizeOf, which is as [Schema].Size, and its key and fields unless they are other's too. That is
// what a history has of a state that other replaced. A nil other shares nothing; of a nil o there
// are none.
func BytesBeside(o, other *Object, sizeOf func(*Object) int) int64 {
	if o == nil {
		return 0
	}
	n := headerBytes + min(max(0, int64(sizeOf(o))), maxSize)
	if other == nil || unsafe.StringData(o.Key) != unsafe.StringData(other.Key) {
		n += int64(len(o.Key))
	}
	if other == nil || !sameSlice(o.Fields, other.Fields) {
		n += int64(len(o.Fields)) * fieldBytes
	}
	return n
}

const (
	headerBytes = int64(unsafe.Sizeof(Object{}))
	fieldBytes  = int64(unsafe.Sizeof(""))
	// maxSize bounds the estimate for one value, so that sums of wrong estimates do not
	// overflow.
	maxSize = 1 << 40
)
