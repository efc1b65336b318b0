package queue

import (
	"fmt"
	"strings"

	"github.com/watchmill/watchmill/store"
)

// DeltaType is the kind of a change of an object, or of all objects.
type DeltaType uint8

// The types of delta. The last three concern all objects, and only a [RealFIFO] has
// them.
const (
	// DeltaAdded: the source has a new object.
	DeltaAdded DeltaType = iota + 1
	// DeltaUpdated: the object changed.
	DeltaUpdated
	// DeltaDeleted: the object was deleted; see Delta.Deleted.
	DeltaDeleted
	// DeltaReplaced: the object was in a list that replaced everything.
	DeltaReplaced
	// DeltaSync: the object is queued again without a change.
	DeltaSync
	// DeltaReplacedAll: Delta.Objects are all objects that exist.
	DeltaReplacedAll
	// DeltaSyncAll: the consumer should process all its objects again, without a
	// change.
	DeltaSyncAll
	// DeltaBookmark: there are no other changes up to Delta.Revision.
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

// Delta is one change in a [DeltaFIFO] or [RealFIFO].
type Delta[T any] struct {
	Type DeltaType
	// Key is that of the object; "" if the delta concerns all objects.
	Key string
	// Object is the object's state after the delta. It is zero if the delta is a
	// deletion, so that a last state is not mistaken for a present one, or if the delta
	// concerns all objects.
	Object T
	// Deleted is the tombstone of a deleted object; nil unless Type is DeltaDeleted.
	Deleted *Deleted[T]
	// Objects are all objects that exist, if Type is DeltaReplacedAll.
	Objects []T
	// Kept are keys of listed objects for which Transform failed (see
	// RealFIFOConfig.OnBadItem), if Type is DeltaReplacedAll: they are not in Objects,
	// but they exist.
	Kept []string
	// Revision is that of the list for DeltaReplaced and DeltaReplacedAll, that
	// of the bookmark for DeltaBookmark, otherwise zero.
	Revision store.Revision
}

// String describes the delta: its type and object, and how certain a deletion is.
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

// Deltas are the changes of one object, oldest first. Those that a queue returns are
// never empty.
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

// String describes the deltas.
func (ds Deltas[T]) String() string {
	parts := make([]string, len(ds))
	for i, d := range ds {
		parts[i] = d.String()
	}
	return strings.Join(parts, ", ")
}

// compacted returns ds, to which a delta was appended, without deltas that the consumer
// does not need: the less certain of two adjacent deletions and, above the limit, the
// oldest that is neither a deletion nor the last.
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

// mergeDeletions merges the deltas at i-1 and i if both are deletions. The first stays if it is
// certain, since it then has the last state, or if the second knows no state at all.
func (ds Deltas[T]) mergeDeletions(i int) Deltas[T] {
	if i < 1 || ds[i-1].Type != DeltaDeleted || ds[i].Type != DeltaDeleted {
		return ds
	}
	less := i
	if !ds[i-1].Deleted.certain() && (ds[i].Deleted.Known || !ds[i-1].Deleted.Known) {
		less = i - 1
	}
	return append(ds[:less], ds[less+1:]...)
}

// Deleted is the tombstone of a deleted object. It is a type of its own, so that it
// cannot be mistaken for the object.
type Deleted[T any] struct {
	Key string
	// Last is the last known state; zero unless Known.
	Last T
	// Known reports whether any state is known.
	Known bool
	// Stale: the deletion was found by a list, not watched, so Last may be older than
	// the object's last state.
	Stale bool
}

// certain reports whether Last is the object's last state.
func (d *Deleted[T]) certain() bool { return d.Known && !d.Stale }

// String describes the last state and how certain it is.
func (d *Deleted[T]) String() string {
	switch {
	case !d.Known:
		return "(unknown)"
	case d.Stale:
		return fmt.Sprintf("(stale) %v", d.Last)
	}
	return fmt.Sprint(d.Last)
}

// KnownObjects is the state that the consumer of a queue has: usually a Store of package
// store/cache, which it changes only while it processes an entry. Both methods are called
// with the queue locked, so they must not call the queue. It never gains methods.
type KnownObjects[T any] interface {
	// ListKeys returns the keys of all objects. Synthetic deletions are queued in
	// its order.
	ListKeys() []string
	// GetByKey returns the object under key and whether there is one.
	GetByKey(key string) (T, bool)
}

// pendingState is the state that the consumer will have once it has processed all
// entries: for each key the newest delta, in order.
type pendingState[T any] struct{ newest orderedMap[*Delta[T]] }

// note makes d the newest of its key.
func (p *pendingState[T]) note(d *Delta[T]) {
	at := p.newest.at(d.Key)
	if at == nil {
		at = p.newest.push(d.Key)
	}
	*at = d
}

// missing returns tombstones for the objects of p and known that are not listed: first
// those of p, then those only of known. For a key in both p counts, since it is newer.
func (p *pendingState[T]) missing(list *listing[T], known KnownObjects[T]) []*Deleted[T] {
	var gone []*Deleted[T]
	listed := list.keys()
	for key, newest := range p.newest.all() {
		if !listed[key] && (*newest).Type != DeltaDeleted {
			gone = append(gone, &Deleted[T]{Key: key, Last: (*newest).Object, Known: true, Stale: true})
		}
	}
	if known == nil {
		return gone
	}
	for _, key := range known.ListKeys() {
		if !listed[key] && p.newest.at(key) == nil {
			last, exists := known.GetByKey(key)
			gone = append(gone, &Deleted[T]{Key: key, Last: last, Known: exists, Stale: true})
		}
	}
	return gone
}

// unchanged returns a DeltaSync for each known object without a pending delta. For
// the others it would be an older state.
func (p *pendingState[T]) unchanged(known KnownObjects[T]) []Delta[T] {
	if known == nil {
		return nil
	}
	var deltas []Delta[T]
	for _, key := range known.ListKeys() {
		if p.newest.at(key) != nil {
			continue
		}
		if object, exists := known.GetByKey(key); exists {
			deltas = append(deltas, Delta[T]{Type: DeltaSync, Key: key, Object: object})
		}
	}
	return deltas
}
