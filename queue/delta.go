package queue

import (
	"fmt"
	"strings"

	"github.com/watchmill/watchmill/store"
)

// DeltaType says what happened to an object, or to all of them.
type DeltaType uint8

// The types of delta. The last three concern no single object and come from a
// [RealFIFO] only.
const (
	// DeltaAdded: the source has a new object.
	DeltaAdded DeltaType = iota + 1
	// DeltaUpdated: the object changed.
	DeltaUpdated
	// DeltaDeleted: the object is gone; Delta.Deleted says what is known of it.
	DeltaDeleted
	// DeltaReplaced: the object was in a list that replaced everything.
	DeltaReplaced
	// DeltaSync: nothing happened; the object comes once more.
	DeltaSync
	// DeltaReplacedAll: Delta.Objects are all objects that exist.
	DeltaReplacedAll
	// DeltaSyncAll: nothing happened; the consumer should process all objects once
	// more.
	DeltaSyncAll
	// DeltaBookmark: nothing happened up to Delta.Revision.
	DeltaBookmark
)

var deltaTypeNames = [...]string{
	DeltaAdded: "Added", DeltaUpdated: "Updated", DeltaDeleted: "Deleted", DeltaReplaced: "Replaced", DeltaSync: "Sync",
	DeltaReplacedAll: "ReplacedAll", DeltaSyncAll: "SyncAll", DeltaBookmark: "Bookmark",
}

// String returns the type's name.
func (t DeltaType) String() string {
	if int(t) < len(deltaTypeNames) && t > 0 {
		return deltaTypeNames[t]
	}
	return fmt.Sprintf("DeltaType(%d)", uint8(t))
}

// Delta is one entry of a [DeltaFIFO] or [RealFIFO]: what happened, and to
// what.
type Delta[T any] struct {
	Type DeltaType
	// Key is that of the object; "" if the delta concerns no single object.
	Key string
	// Object is the object's state after the delta. It is zero if the delta is
	// a deletion, so that no last state is mistaken for a present one, or if it
	// concerns no single object.
	Object T
	// Deleted is what is known of a deleted object; nil unless Type is
	// DeltaDeleted.
	Deleted *Deleted[T]
	// Objects are all objects that exist, if Type is DeltaReplacedAll.
	Objects []T
	// Kept are keys of listed objects for which Transform failed (see
	// RealFIFOConfig.OnBadItem), if Type is DeltaReplacedAll: they are not among
	// Objects and not deleted.
	Kept []string
	// Revision is that of the list for DeltaReplaced and DeltaReplacedAll, that
	// of the bookmark for DeltaBookmark, otherwise zero.
	Revision store.Revision
}

// String prints the delta for people: its type, and how sure a deletion is.
func (d Delta[T]) String() string {
	switch d.Type {
	case DeltaDeleted:
		return d.Type.String() + " " + d.Deleted.String()
	case DeltaReplacedAll:
		return fmt.Sprintf("%v@%d %v", d.Type, d.Revision, d.Objects)
	case DeltaBookmark:
		return fmt.Sprintf("%v@%d", d.Type, d.Revision)
	case DeltaSyncAll:
		return d.Type.String()
	}
	return fmt.Sprintf("%v %v", d.Type, d.Object)
}

// Deltas is what happened to one object, oldest first. It is never empty when a
// queue hands it out.
type Deltas[T any] []Delta[T]

// Key returns the key of the object, or "" if there are no deltas.
func (ds Deltas[T]) Key() string {
	if len(ds) == 0 {
		return ""
	}
	return ds[0].Key
}

// Oldest returns the first delta, or nil if there is none.
func (ds Deltas[T]) Oldest() *Delta[T] {
	if len(ds) == 0 {
		return nil
	}
	return &ds[0]
}

// Newest returns the last delta, or nil if there is none.
func (ds Deltas[T]) Newest() *Delta[T] {
	if len(ds) == 0 {
		return nil
	}
	return &ds[len(ds)-1]
}

// String prints the deltas for people.
func (ds Deltas[T]) String() string {
	parts := make([]string, len(ds))
	for i, d := range ds {
		parts[i] = d.String()
	}
	return strings.Join(parts, ", ")
}

// compacted returns ds without what the consumer does not need, given that its
// last was just appended: the less certain of two deletions in a row, and, above
// the limit, the oldest that is neither a deletion nor the last.
func (ds Deltas[T]) compacted(limit int) Deltas[T] {
	ds = ds.mergeDeletions(len(ds) - 1)
	for i := 0; len(ds) > limit && i < len(ds)-1; {
		if ds[i].Type == DeltaDeleted {
			i++
			continue
		}
		ds = append(ds[:i], ds[i+1:]...)
		ds = ds.mergeDeletions(i)
	}
	return ds
}

// mergeDeletions merges the deltas at i-1 and i if both are deletions. The first
// one stays if it was seen happening, as it then knows the last state.
func (ds Deltas[T]) mergeDeletions(i int) Deltas[T] {
	if i < 1 || ds[i-1].Type != DeltaDeleted || ds[i].Type != DeltaDeleted {
		return ds
	}
	less := i
	if !ds[i-1].Deleted.certain() {
		less = i - 1
	}
	return append(ds[:less], ds[less+1:]...)
}

// Deleted is what is known of an object that is gone: a tombstone. It is a type
// of its own, so it cannot be mistaken for the object.
type Deleted[T any] struct {
	Key string
	// Last is the last state that is known; zero unless Known.
	Last T
	// Known reports whether any state is known.
	Known bool
	// Stale reports that the deletion was not seen happening but found by a
	// later list, so Last may not be the state that the object ended with.
	Stale bool
}

// certain reports whether the deletion was seen happening.
func (d *Deleted[T]) certain() bool { return d.Known && !d.Stale }

// String prints what is known for people.
func (d *Deleted[T]) String() string {
	switch {
	case !d.Known:
		return "(unknown)"
	case d.Stale:
		return fmt.Sprintf("(stale) %v", d.Last)
	}
	return fmt.Sprint(d.Last)
}
