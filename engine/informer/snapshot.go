package informer

import (
	"iter"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/cache"
)

// Snapshot is an informer's state at one revision: objects and indexes. It is
// immutable; reading it takes no lock and never blocks. It keeps its objects alive,
// so do not keep old ones.
//
// Results are in ascending order of keys.
type Snapshot[T any] struct{ core snapshotCore }

// snapshotCore is the untyped core of the façade: a [*state]; see [informerCore].
type snapshotCore interface {
	at() store.Revision
	size() int
	get(key string) *store.Object
	under(prefix string) iter.Seq[*store.Object]
	list(prefix string, selector labels.Selector) []*store.Object
	byIndex(name, value string) ([]*store.Object, error)
	indexKeys(name, value string) ([]string, error)
	indexValues(name string) ([]string, error)
}

// Revision returns the revision up to which the snapshot has all changes. Zero
// means that the source has not been listed yet.
func (s Snapshot[T]) Revision() store.Revision { return s.core.at() }

// Len returns the number of objects.
func (s Snapshot[T]) Len() int { return s.core.size() }

// Get returns the object under key, or nil.
func (s Snapshot[T]) Get(key string) *Object[T] { return typed[T](s.core.get(key)) }

// All iterates over all objects.
func (s Snapshot[T]) All() iter.Seq[*Object[T]] { return s.Under("") }

// Under iterates over the objects whose keys are under prefix, by whole path
// segments (see [store.HasPrefix]). It seeks, so other objects cost nothing.
func (s Snapshot[T]) Under(prefix string) iter.Seq[*Object[T]] {
	return func(yield func(*Object[T]) bool) {
		s.core.under(prefix)(func(o *store.Object) bool { return yield(typed[T](o)) })
	}
}

// List returns the objects that the selector matches; nil matches all. A
// selector that matches nothing costs nothing.
func (s Snapshot[T]) List(selector labels.Selector) []*Object[T] {
	return store.AsObjects[Object[T]](s.core.list("", selector))
}

// ByIndex returns the objects that have value in the named index; none is not an
// error. The error is [ErrUnknownIndex].
func (s Snapshot[T]) ByIndex(name, value string) ([]*Object[T], error) {
	objects, err := s.core.byIndex(name, value)
	return store.AsObjects[Object[T]](objects), err
}

// IndexKeys returns the keys of the objects that have value in the named index.
// The error is [ErrUnknownIndex].
func (s Snapshot[T]) IndexKeys(name, value string) ([]string, error) {
	return s.core.indexKeys(name, value)
}

// IndexValues returns the values that any object has in the named index,
// ascending. The error is [ErrUnknownIndex].
func (s Snapshot[T]) IndexValues(name string) ([]string, error) { return s.core.indexValues(name) }

// Lister reads the objects under one prefix, always from the newest snapshot. It
// is safe for concurrent use and takes no lock. Make one with
// [SharedInformer.Lister].
type Lister[T any] struct {
	core   informerCore
	prefix string
}

// Get returns the object under key, or nil if there is none or it is not under
// the lister's prefix.
func (l Lister[T]) Get(key string) *Object[T] {
	if !store.HasPrefix(key, l.prefix) {
		return nil
	}
	return typed[T](l.core.snapshot().get(key))
}

// List returns the objects that the selector matches, in the order of their
// keys; nil matches all.
func (l Lister[T]) List(selector labels.Selector) []*Object[T] {
	return store.AsObjects[Object[T]](l.core.snapshot().list(l.prefix, selector))
}

// All iterates over the objects of the snapshot when the loop starts.
func (l Lister[T]) All() iter.Seq[*Object[T]] {
	return func(yield func(*Object[T]) bool) { Snapshot[T]{l.core.snapshot()}.Under(l.prefix)(yield) }
}

// state is the untyped [Snapshot].
type state struct {
	view     *cache.View[*store.Object]
	revision store.Revision
	// storages counts the storages that the informer has listed: revisions of two
	// cannot be compared.
	storages int
}

func (s *state) at() store.Revision { return s.revision }

func (s *state) size() int { return s.view.Len() }

func (s *state) get(key string) *store.Object {
	object, _ := s.view.GetByKey(key)
	return object
}

func (s *state) under(prefix string) iter.Seq[*store.Object] {
	return func(yield func(*store.Object) bool) {
		from := prefix
		if prefix != "" && !strings.HasSuffix(prefix, "/") {
			// Others may be between the key itself and those below: "ns" < "ns-2/a" < "ns/a".
			if object := s.get(prefix); object != nil && !yield(object) {
				return
			}
			from += "/"
		}
		for key, object := range s.view.AllFrom(from) {
			if !strings.HasPrefix(key, from) || !yield(object) {
				return
			}
		}
	}
}

func (s *state) list(prefix string, selector labels.Selector) []*store.Object {
	if prefix == "" && (selector == nil || selector.Empty()) {
		return s.view.List()
	}
	// Only keys and fields can cause errors, and there are none.
	filter, _ := store.NewFilter(nil, store.FilterOptions{LabelSelector: selector})
	var matching []*store.Object
	if filter.Nothing() {
		return matching
	}
	for object := range s.under(prefix) {
		if store.Matches(filter, object) {
			matching = append(matching, object)
		}
	}
	return matching
}

func (s *state) byIndex(name, value string) ([]*store.Object, error) {
	return s.view.ByIndex(name, value)
}

func (s *state) indexKeys(name, value string) ([]string, error) {
	return s.view.IndexKeys(name, value)
}

func (s *state) indexValues(name string) ([]string, error) {
	return s.view.ListIndexFuncValues(name)
}
