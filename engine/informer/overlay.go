package informer

import (
	"cmp"
	"slices"
	"sync"

	"github.com/watchmill/watchmill/store"
)

// DefaultOverlay is the default limit of an [Overlay]: more writes than a
// controller has in flight.
const DefaultOverlay = 1024

// Overlay lets a program read its own writes before the informer has them: a write
// shadows the snapshot until the snapshot has reached the write's revision. Since a
// snapshot has all changes up to its revision, a write recorded late cannot hide a
// later change or deletion.
//
//	write ──▶ Wrote, Removed ──┐
//	                           ▼ while its revision > the snapshot's
//	informer ──▶ Snapshot ──▶ Get, ByIndex
//
// It is safe for concurrent use. Make one with [SharedInformer.Overlay].
type Overlay[T any] struct{ core overlayCore }

// overlayCore is the untyped core of the façade: an [overlay]; see [informerCore].
type overlayCore interface {
	put(key string, w write)
	get(key string) *store.Object
	byIndex(name, value string) ([]*store.Object, error)
}

// Wrote records a write by the object that it returned. Reads return it as it is:
// Config.Transform is for what comes from the source.
func (v *Overlay[T]) Wrote(object *Object[T]) {
	v.core.put(object.Key, write{revision: object.Revision, object: store.Header(object)})
}

// Removed records a deletion at revision rev.
func (v *Overlay[T]) Removed(key string, rev store.Revision) {
	v.core.put(key, write{revision: rev})
}

// Get returns the newer of the snapshot's and the overlay's object under key; nil
// if there is none.
func (v *Overlay[T]) Get(key string) *Object[T] { return typed[T](v.core.get(key)) }

// ByIndex returns the objects that have value in the named index, in the order of
// their keys, including recorded writes. One for which the index's function fails is in no
// result: [Config].ItemErrors and OnError are for what comes from the source.
//
// The error is [ErrUnknownIndex].
func (v *Overlay[T]) ByIndex(name, value string) ([]*Object[T], error) {
	objects, err := v.core.byIndex(name, value)
	return store.AsObjects[Object[T]](objects), err
}

// overlay is the untyped [Overlay].
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
	// storages is that of the state when it was recorded: a write to storage that was
	// replaced by another since is not there any more.
	storages int
}

func (s *sharedInformer) overlay(limit int) overlayCore {
	if limit <= 0 {
		limit = DefaultOverlay
	}
	return &overlay{informer: s, limit: limit, writes: make(map[string]write)}
}

// put records a write.
func (v *overlay) put(key string, w write) {
	v.mu.Lock()
	defer v.mu.Unlock()
	snapshot := v.informer.published.Load()
	w.storages = snapshot.storages
	if was := v.writes[key]; was.storages == w.storages && w.revision <= was.revision {
		return
	}
	v.writes[key] = w
	if len(v.writes) > v.limit {
		v.shrink(snapshot)
	}
}

// shrink drops the writes that the snapshot has, and then the oldest until a
// quarter of the limit is free, so that it is rarely needed.
func (v *overlay) shrink(snapshot *state) {
	kept := make([]string, 0, len(v.writes))
	for key := range v.writes {
		if _, over := v.over(snapshot, key); over {
			kept = append(kept, key)
		}
	}
	slices.SortFunc(kept, func(a, b string) int {
		return cmp.Or(cmp.Compare(v.writes[a].revision, v.writes[b].revision), cmp.Compare(a, b))
	})
	for _, key := range kept[:max(0, len(kept)-max(v.limit*3/4, 1))] {
		delete(v.writes, key)
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

// over returns the write that shadows the snapshot's object under key.
func (v *overlay) over(snapshot *state, key string) (write, bool) {
	w, ok := v.writes[key]
	if ok && (w.revision <= snapshot.revision || w.storages != snapshot.storages) {
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
		if slices.Contains(v.informer.transform.valuesOfWrite(name, w.object), value) {
			found = append(found, w.object)
		}
	}
	slices.SortFunc(found, func(a, b *store.Object) int { return cmp.Compare(a.Key, b.Key) })
	return found, nil
}
