package backend

import (
	"context"
	"time"

	"github.com/watchmill/watchmill/store"
)

// Storage is versioned storage as users want it, over any [Backend]: keys come
// from the values, updates are functions that are retried until they apply, and
// deletions can be made to depend on what is being deleted.
//
// All methods are safe for concurrent use. They block as long as the backend
// does, and retry while others write the same key; ctx bounds both. A function
// of the user's that panics becomes an [ErrPanic], and nothing is written.
type Storage[T any] struct {
	backend Backend[T]
	schema  store.Schema[T]
}

// NewStorage returns storage over b. It adds no state to b: any number of
// Storages may share one backend.
func NewStorage[T any](b Backend[T], schema store.Schema[T]) *Storage[T] {
	return &Storage[T]{backend: b, schema: schema}
}

// Backend returns what the storage was made over.
func (s *Storage[T]) Backend() Backend[T] { return s.backend }

// CreateOptions qualifies a Create.
type CreateOptions struct {
	// TTL is how long the object lives before storage deletes it; zero means
	// for ever.
	TTL time.Duration
}

// Create stores value under the key that the schema gives it and returns it as
// stored.
//
// Errors: [store.ErrExists] if there is an object with that key,
// [store.ErrInvalidKey], [ErrInvalidOption], [ErrPanic], ctx's error, or
// whatever reaching storage met.
func (s *Storage[T]) Create(ctx context.Context, value T, opts CreateOptions) (*store.Object[T], error) {
	put := PutOptions(opts)
	if err := validateTTL("CreateOptions.TTL", put); err != nil {
		return nil, err
	}
	key, err := s.keyOf(value)
	if err != nil {
		return nil, err
	}
	return s.backend.Put(ctx, key, value, 0, put)
}

// Get returns the newest object under key.
//
// Errors: [store.ErrNotFound], [store.ErrInvalidKey], ctx's error, or whatever
// reaching storage met.
func (s *Storage[T]) Get(ctx context.Context, key string) (*store.Object[T], error) {
	if err := store.ValidateKey(key); err != nil {
		return nil, err
	}
	return s.backend.Get(ctx, key)
}

// List returns a page of objects in key order; see [ListerWatcher] for its
// errors.
func (s *Storage[T]) List(ctx context.Context, opts ListOptions) (*List[T], error) {
	return s.backend.List(ctx, opts)
}

// errNoKeyFunc is a configuration mistake, found at the first write.
var errNoKeyFunc = &OptionError{"Schema.Key", "it is nil; give the function that returns a value's key"}

// keyOf returns value's key by the schema, validated.
func (s *Storage[T]) keyOf(value T) (string, error) {
	key, err := s.rawKeyOf(value)
	if err != nil {
		return "", err
	}
	return key, store.ValidateKey(key)
}

// rawKeyOf returns value's key by the schema, which may be invalid.
func (s *Storage[T]) rawKeyOf(value T) (key string, err error) {
	if s.schema.Key == nil {
		return "", errNoKeyFunc
	}
	err = Contain("Schema.Key", "", func() { key = s.schema.Key(value) })
	return key, err
}
