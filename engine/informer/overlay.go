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

// Overlay lets who writes read their own writes at once, before the informer has
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
type Overlay[T any] struct {
	informer *SharedInformer[T]
	limit    int

	mu     sync.Mutex
	writes map[string]overlaid[T]
}

// overlaid is a write: of an object, or, if that is nil, of its end.
type overlaid[T any] struct {
	revision store.Revision
	object   *Object[T]
}

// Overlay returns an empty overlay that holds at most limit writes, of which
// those with the lowest revisions go first; zero means [DefaultOverlay].
func (s *SharedInformer[T]) Overlay(limit int) *Overlay[T] {
	if limit <= 0 {
		limit = DefaultOverlay
	}
	return &Overlay[T]{informer: s, limit: limit, writes: make(map[string]overlaid[T])}
}

// Wrote lays an object over the snapshot, as the write returned it.
func (v *Overlay[T]) Wrote(object *Object[T]) {
	v.lay(object.Key, overlaid[T]{object.Revision, object})
}

// Removed lays a deletion at revision rev over the snapshot.
func (v *Overlay[T]) Removed(key string, rev store.Revision) {
	v.lay(key, overlaid[T]{revision: rev})
}

func (v *Overlay[T]) lay(key string, w overlaid[T]) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if w.revision <= v.writes[key].revision {
		return
	}
	v.writes[key] = w
	if len(v.writes) > v.limit {
		v.shrink(v.informer.Revision())
	}
}

// shrink drops what the snapshot has, and then the oldest until a quarter of the
// room is free, so that it is seldom needed.
func (v *Overlay[T]) shrink(reached store.Revision) {
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

// Get returns the object under key as it was written last, by the snapshot or by
// the overlay; nil if there is none.
func (v *Overlay[T]) Get(key string) *Object[T] {
	v.mu.Lock()
	defer v.mu.Unlock()
	snapshot := v.informer.Snapshot()
	if w, ok := v.over(snapshot, key); ok {
		return w.object
	}
	return snapshot.Get(key)
}

// over returns what lies over the snapshot under key.
func (v *Overlay[T]) over(snapshot *Snapshot[T], key string) (overlaid[T], bool) {
	w, ok := v.writes[key]
	if ok && w.revision <= snapshot.revision {
		delete(v.writes, key)
		ok = false
	}
	return w, ok
}

// ByIndex returns the objects that have value in the named index, in the order
// of their keys. Objects that were written are indexed by what was written.
//
// The error is [ErrUnknownIndex].
func (v *Overlay[T]) ByIndex(name, value string) ([]*Object[T], error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	snapshot := v.informer.Snapshot()
	found, err := snapshot.ByIndex(name, value)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(o *Object[T]) bool {
		_, over := v.over(snapshot, o.Key)
		return over
	})
	for key := range v.writes {
		w, over := v.over(snapshot, key)
		if !over || w.object == nil {
			continue
		}
		values := snapshot.valuesOf(name, w.object)
		if slices.Contains(values, value) {
			found = append(found, w.object)
		}
	}
	slices.SortFunc(found, func(a, b *Object[T]) int { return cmp.Compare(a.Key, b.Key) })
	return found, nil
}

// valuesOf returns the values of an object in the named index. One that the
// index fails for has none; see [Config].ItemErrors.
func (s *Snapshot[T]) valuesOf(name string, o *Object[T]) []string {
	values, _ := s.view.GetIndexers()[name](o) // they cannot fail
	return values
}
