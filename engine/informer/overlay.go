package informer

import (
	"cmp"
	"slices"
	"sync"

	"github.com/watchmill/watchmill/store"
)

// DefaultOverlay is how many writes an [Overlay] holds if it is given no other
// number: more than a controller has under way.
const DefaultOverlay = 1024

// Overlay lets a program read its own writes at once, before the informer has
// them: what was written is laid over the snapshot until that has reached the
// write's revision. Since a snapshot has all changes up to its revision, nothing
// else decides: a write that comes late cannot bring back what was changed or
// deleted after it.
//
//	write ──▶ Wrote, Removed ──┐
//	                           ▼ while its revision > the snapshot's
//	informer ──▶ Snapshot ──▶ Get, ByIndex
//
// It is safe for concurrent use. Make one with [SharedInformer.Overlay].
type Overlay[T any] struct{ core overlayCore }

// overlayCore is what the typed façade calls: an [overlay]; see [informerCore].
type overlayCore interface {
	put(key string, w write)
	get(key string) *store.Object
	byIndex(name, value string) ([]*store.Object, error)
}

// Wrote lays an object over the snapshot, as the write returned it.
func (v *Overlay[T]) Wrote(object *Object[T]) {
	v.core.put(object.Key, write{object.Revision, store.Header(object)})
}

// Removed lays a deletion at revision rev over the snapshot.
func (v *Overlay[T]) Removed(key string, rev store.Revision) {
	v.core.put(key, write{revision: rev})
}

// Get returns the object under key as it was written last, by the snapshot or by
// the overlay; nil if there is none.
func (v *Overlay[T]) Get(key string) *Object[T] { return typed[T](v.core.get(key)) }

// ByIndex returns the objects that have value in the named index, in the order
// of their keys. Objects that were written are indexed by what was written.
//
// The error is [ErrUnknownIndex].
func (v *Overlay[T]) ByIndex(name, value string) ([]*Object[T], error) {
	objects, err := v.core.byIndex(name, value)
	return store.AsObjects[Object[T]](objects), err
}

// overlay is an [Overlay] whatever the type of its objects.
type overlay struct {
	informer *sharedInformer
	limit    int

	mu     sync.Mutex
	writes map[string]write
}

// write is a write of an object, or, if that is nil, its deletion.
type write struct {
	revision store.Revision
	object   *store.Object
}

func (s *sharedInformer) overlay(limit int) overlayCore {
	if limit <= 0 {
		limit = DefaultOverlay
	}
	return &overlay{informer: s, limit: limit, writes: make(map[string]write)}
}

// put lays a write over the snapshot.
func (v *overlay) put(key string, w write) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if w.revision <= v.writes[key].revision {
		return
	}
	v.writes[key] = w
	if len(v.writes) > v.limit {
		v.shrink(v.informer.published.Load().revision)
	}
}

// shrink drops what the snapshot has, and then the oldest until a quarter of the
// room is free, so that it is seldom needed.
func (v *overlay) shrink(reached store.Revision) {
	revisions := make([]store.Revision, 0, len(v.writes))
	for _, w := range v.writes {
		revisions = append(revisions, w.revision)
	}
	slices.Sort(revisions)
	oldest := revisions[len(revisions)-max(v.limit*3/4, 1)]
	for key, w := range v.writes {
		if w.revision <= reached || w.revision < oldest {
			delete(v.writes, key)
		}
	}
}

func (v *overlay) get(key string) *store.Object {
	v.mu.Lock()
	defer v.mu.Unlock()
	snapshot := v.informer.published.Load()
	if w, ok := v.over(snapshot, key); ok {
		return w.object
	}
	return snapshot.get(key)
}

// over returns what lies over the snapshot under key.
func (v *overlay) over(snapshot *state, key string) (write, bool) {
	w, ok := v.writes[key]
	if ok && w.revision <= snapshot.revision {
		delete(v.writes, key)
		ok = false
	}
	return w, ok
}

func (v *overlay) byIndex(name, value string) ([]*store.Object, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	snapshot := v.informer.published.Load()
	found, err := snapshot.byIndex(name, value)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(o *store.Object) bool {
		_, over := v.over(snapshot, o.Key)
		return over
	})
	for key := range v.writes {
		w, over := v.over(snapshot, key)
		if !over || w.object == nil {
			continue
		}
		if slices.Contains(snapshot.valuesOf(name, w.object), value) {
			found = append(found, w.object)
		}
	}
	slices.SortFunc(found, func(a, b *store.Object) int { return cmp.Compare(a.Key, b.Key) })
	return found, nil
}
