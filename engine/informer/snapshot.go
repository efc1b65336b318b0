package informer

import (
	"iter"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/store"
)

// Snapshot is everything that the informer knew at one revision: objects and
// indexes as they were together. It is immutable; reading it takes no lock and
// waits for nobody. It keeps its objects alive, so do not hold on to old ones.
//
// All that it returns is in ascending order of keys.
type Snapshot[T any] struct {
	view     *store.StoreView[*Object[T]]
	revision store.Revision
}

// Revision returns what the snapshot is of: it has all changes up to it. Zero
// means that the source has not been listed yet.
func (s *Snapshot[T]) Revision() store.Revision { return s.revision }

// Len returns the number of objects.
func (s *Snapshot[T]) Len() int { return s.view.Len() }

// Get returns the object under key, or nil.
func (s *Snapshot[T]) Get(key string) *Object[T] {
	object, _ := s.view.GetByKey(key)
	return object
}

// All iterates over all objects.
func (s *Snapshot[T]) All() iter.Seq[*Object[T]] { return s.Under("") }

// Under iterates over the objects whose keys are under prefix, by whole path
// segments (see [store.HasPrefix]). It seeks: the others cost nothing.
func (s *Snapshot[T]) Under(prefix string) iter.Seq[*Object[T]] {
	return func(yield func(*Object[T]) bool) {
		for key, object := range s.view.AllFrom(prefix) {
			if !strings.HasPrefix(key, prefix) {
				return
			}
			if store.HasPrefix(key, prefix) && !yield(object) {
				return
			}
		}
	}
}

// List returns the objects that the selector matches; nil matches all. A
// selector that matches nothing costs nothing.
func (s *Snapshot[T]) List(selector labels.Selector) []*Object[T] {
	if selector == nil || selector.Empty() {
		return s.view.List()
	}
	return s.list("", selector)
}

func (s *Snapshot[T]) list(prefix string, selector labels.Selector) []*Object[T] {
	filter := store.FilterFor("", "", selector, nil)
	var matching []*Object[T]
	if filter.Nothing() {
		return matching
	}
	for object := range s.Under(prefix) {
		if store.Matches(filter, object) {
			matching = append(matching, object)
		}
	}
	return matching
}

// ByIndex returns the objects that have value in the named index; none is not an
// error. The error is [ErrUnknownIndex].
func (s *Snapshot[T]) ByIndex(name, value string) ([]*Object[T], error) {
	return s.view.ByIndex(name, value)
}

// IndexKeys returns the keys of the objects that have value in the named index.
// The error is [ErrUnknownIndex].
func (s *Snapshot[T]) IndexKeys(name, value string) ([]string, error) {
	return s.view.IndexKeys(name, value)
}

// IndexValues returns the values that any object has in the named index,
// ascending. The error is [ErrUnknownIndex].
func (s *Snapshot[T]) IndexValues(name string) ([]string, error) {
	return s.view.ListIndexFuncValues(name)
}

// Lister reads the objects under one prefix, always from the newest snapshot. It
// is safe for concurrent use and takes no lock. Make one with
// [SharedInformer.Lister].
type Lister[T any] struct {
	newest func() *Snapshot[T]
	prefix string
}

// Get returns the object under key, or nil if there is none or it is not under
// the lister's prefix.
func (l Lister[T]) Get(key string) *Object[T] {
	if !store.HasPrefix(key, l.prefix) {
		return nil
	}
	return l.newest().Get(key)
}

// List returns the objects that the selector matches, in the order of their
// keys; nil matches all.
func (l Lister[T]) List(selector labels.Selector) []*Object[T] {
	return l.newest().list(l.prefix, selector)
}

// All iterates over the objects that are there when the loop starts.
func (l Lister[T]) All() iter.Seq[*Object[T]] {
	return func(yield func(*Object[T]) bool) { l.newest().Under(l.prefix)(yield) }
}
