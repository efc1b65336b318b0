package enginetest

import (
	"context"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// Add creates an object, as another client of the storage would.
//
// Errors: [engine.ErrExists], [engine.ErrInvalidKey], [store.ErrClosed], a panic
// of the configuration's functions as a [*backend.PanicError].
func (s *Source[T]) Add(value T) (engine.Revision, error) {
	return revisionOf(s.storage().Create(context.Background(), s.draft(value), backend.CreateOptions{}))
}

// Modify replaces the object that has the value's key. A value that is equal to
// the one there changes nothing.
//
// Errors: [engine.ErrNotFound], and as for Add.
func (s *Source[T]) Modify(value T) (engine.Revision, error) {
	draft := s.draft(value)
	var key string
	if err := backend.Contain("Config.Key", "", func() { key = s.schema.Key(draft) }); err != nil {
		return 0, err
	}
	replace := func(context.Context, *store.Object) (*store.Object, error) { return s.draft(value), nil }
	return revisionOf(s.storage().GuaranteedUpdate(context.Background(), key, replace, backend.UpdateOptions{}))
}

// Delete deletes the object under key.
//
// Errors: as for Modify.
func (s *Source[T]) Delete(key string) (engine.Revision, error) {
	return revisionOf(s.storage().Delete(context.Background(), key, backend.DeleteOptions{}))
}

func (s *Source[T]) storage() *backend.Storage { return backend.NewStorage(s.memory, s.schema) }

// draft returns a new object with that value.
func (s *Source[T]) draft(value T) *store.Object {
	o := s.schema.New()
	*s.schema.Pointer(o).(*T) = value
	return o
}

func revisionOf(o *store.Object, err error) (engine.Revision, error) {
	if err != nil {
		return 0, err
	}
	return o.Revision, nil
}

// Hide hides the changes that write makes from all watches, for good; lists
// show them. Write must only write: reads through an engine may wait for a watch
// that Hide holds up. Hide returns what write returned.
func (s *Source[T]) Hide(write func() error) error {
	s.hiding.Lock()
	defer s.hiding.Unlock()
	before, err := s.memory.Revision(context.Background())
	if err != nil {
		return err
	}
	failed := write()
	after, err := s.memory.Revision(context.Background())
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for rev := before + 1; rev <= after; rev++ {
		s.hidden[rev] = true
	}
	return failed
}

// Forget gives up all history before the newest revision: watches that have not
// got so far, and those that are to start before it, expire.
func (s *Source[T]) Forget() error {
	rev, err := s.memory.Revision(context.Background())
	if err != nil {
		return err
	}
	return s.memory.Compact(context.Background(), rev)
}
