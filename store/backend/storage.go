package backend

import (
	"context"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// Storage is versioned storage as users want it, over any [Backend]: keys come
// from the values, updates are functions that are retried until they apply, and
// deletions can be made to depend on what is being deleted.
//
// All methods are safe for concurrent use. They block as long as the backend
// does, and retry while others write the same key; ctx bounds both. A function
// of the user's that panics becomes an [usercode.ErrPanic], and nothing is written.
type Storage struct {
	backend Backend
	schema  store.Schema
}

// NewStorage returns storage over b. It adds no state to b: any number of
// Storages may share one backend.
func NewStorage(b Backend, schema store.Schema) *Storage {
	return &Storage{backend: b, schema: schema}
}

// Backend returns what the storage was made over.
func (s *Storage) Backend() Backend { return s.backend }

// CreateOptions qualifies a Create.
type CreateOptions struct {
	// TTL is how long the object lives before storage deletes it; zero means
	// for ever.
	TTL time.Duration
}

// Create stores draft, of which only the value is filled in, and the key if it
// cannot follow from the value, under the key that the schema gives it, and returns it as stored.
//
// Errors: [store.ErrExists] if there is an object with that key,
// [store.ErrInvalidKey], [usercode.ErrConfig], [usercode.ErrPanic], ctx's error, or
// whatever reaching storage met.
func (s *Storage) Create(ctx context.Context, draft *store.Object, opts CreateOptions) (*store.Object, error) {
	if err := validateTTL("CreateOptions.TTL", opts.TTL, "the object never expires"); err != nil {
		return nil, err
	}
	key, err := s.keyOf(draft)
	if err == nil {
		err = store.ValidateKey(key)
	}
	if err != nil {
		return nil, err
	}
	return s.put(ctx, key, draft, nil, PutOptions{TTL: opts.TTL})
}

// put describes draft and writes it.
func (s *Storage) put(ctx context.Context, key string, draft, prev *store.Object, opts PutOptions) (*store.Object, error) {
	draft.Key = key
	if err := Describe(&s.schema, draft); err != nil {
		return nil, err
	}
	return s.backend.Put(ctx, draft, prev, opts)
}

// Get returns the newest object under key.
//
// Errors: [store.ErrNotFound], [store.ErrInvalidKey], ctx's error, or whatever
// reaching storage met.
func (s *Storage) Get(ctx context.Context, key string) (*store.Object, error) {
	if err := store.ValidateKey(key); err != nil {
		return nil, err
	}
	return s.backend.Get(ctx, key)
}

// List returns a page of objects in key order; see [ListerWatcher] for its
// errors.
func (s *Storage) List(ctx context.Context, opts ListOptions) (*List, error) {
	return s.backend.List(ctx, opts)
}

// keyOf returns the key of o's value by the schema, which may be invalid.
func (s *Storage) keyOf(o *store.Object) (key string, err error) {
	err = usercode.Call("Schema.Key", "", func() { key = s.schema.Key(o) })
	return key, err
}
