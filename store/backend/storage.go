package backend

import (
	"context"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// Storage has the operations of users, over any [Backend]: keys come from the values,
// updates are functions that are retried until they apply, and deletions can depend on
// the object that is deleted.
//
// All methods are safe for concurrent use. They block as long as the backend does, and
// retry while other calls write the same key; ctx bounds both. If a function of the
// user's panics, the error is an [usercode.ErrPanic] and nothing is written. Only over etcd
// and remote storage, where a function that needs the answer of a write, as
// [store.Schema].SetRevision does, runs after it, its panic is an [ErrUncertain], too: the
// object is stored.
type Storage struct {
	backend Backend
	schema  store.Schema
}

// NewStorage returns storage over b. It adds no state to b: any number of
// Storages may share one backend.
func NewStorage(b Backend, schema store.Schema) *Storage {
	return &Storage{backend: b, schema: schema}
}

// Backend returns the backend below.
func (s *Storage) Backend() Backend { return s.backend }

// CreateOptions qualifies a Create.
type CreateOptions struct {
	// TTL is how long the object lives before storage deletes it; zero means that it
	// never expires.
	TTL time.Duration
}

// Create stores draft under the key that the schema returns for it, and returns the
// stored object. Only draft's value must be filled in, and its key if the schema cannot
// derive it from the value.
//
// Errors: [store.ErrExists] if there is an object with that key,
// [store.ErrInvalidKey], [usercode.ErrConfig], [usercode.ErrPanic], ctx's cause, or an
// error of reaching storage.
func (s *Storage) Create(ctx context.Context, draft *store.Object, opts CreateOptions) (*store.Object, error) {
	if err := validateTTL("CreateOptions", opts.TTL, "the object never expires"); err != nil {
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
	if prev != nil {
		draft.Labels, draft.Fields = prev.Labels, prev.Fields // usually the same
	}
	if err := Describe(&s.schema, draft); err != nil {
		return nil, err
	}
	return s.backend.Put(ctx, draft, prev, opts)
}

// Get returns the newest object under key.
//
// Errors: [store.ErrNotFound], [store.ErrInvalidKey], ctx's cause, or an error of
// reaching storage.
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

// Describe fills o's labels and fields from its value, with panics of the
// schema's functions returned as a [*usercode.PanicError].
func Describe(schema *store.Schema, o *store.Object) error {
	return usercode.Call("Schema.Describe (Labels and Fields)", o.Key, func() { schema.Describe(o) })
}

// Measure returns the bytes that o's value holds by the schema, with panics
// returned as a [*usercode.PanicError].
func Measure(schema *store.Schema, o *store.Object) (size int, err error) {
	err = usercode.Call("Schema.Size", o.Key, func() { size = schema.Size(o) })
	return size, err
}
