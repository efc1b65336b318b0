package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/usercode"
)

// Create stores value under its key and returns it as stored. A watch from its Revision
// sees all later changes.
//
// Errors: [ErrExists], [ErrInvalidKey], [ErrEngineClosed], a [*usercode.PanicError] if
// a function of the configuration panics, ctx's cause, or the backend's error.
func (e *Engine[T]) Create(ctx context.Context, value T) (*Object[T], error) {
	return e.CreateWith(ctx, value, CreateOptions{})
}

// CreateOptions qualifies a CreateWith. The zero value is a Create.
type CreateOptions struct {
	// TTL is how long the object lives before the backend deletes it by itself; zero means
	// that it never expires.
	TTL time.Duration
}

// CreateWith is Create with options.
//
// Errors: as for Create; [ErrConfig] if TTL is negative, and [ErrUnsupported] if the
// backend has no TTLs.
func (e *Engine[T]) CreateWith(ctx context.Context, value T, opts CreateOptions) (*Object[T], error) {
	o, err := e.core.create(ctx, draft(&value), opts)
	return typed[T](o), err
}

func (e *core) create(ctx context.Context, draft *store.Object, opts CreateOptions) (*store.Object, error) {
	if err := e.accepts(); err != nil {
		return nil, err
	}
	if e.cfg.keyless {
		return nil, errNoKey
	}
	if err := e.carry(ctx, nil, draft, expiry{}); err != nil {
		return nil, err
	}
	return e.beginWrite(ctx).acknowledge(e.storage.Create(ctx, draft, backend.CreateOptions{TTL: opts.TTL}))
}

// optionNamed returns err, with given in place of inStorage if it is about the option that package backend
// calls so: the caller has given it under the other name.
func optionNamed(err error, inStorage, given string) error {
	if err == nil {
		return nil // allocates nothing
	}
	var wrong *usercode.ConfigError
	if !errors.As(err, &wrong) || wrong.Field != inStorage {
		return err
	}
	return &usercode.ConfigError{Field: given, Problem: wrong.Problem}
}

// UpdateOptions qualifies an Update. The zero value updates whatever object has
// the key.
type UpdateOptions struct {
	// Preconditions must hold for the object that is replaced.
	Preconditions Preconditions
	// CreateIfMissing calls the function with the zero value and creates the
	// object if there is none. So does the precondition Absent.
	CreateIfMissing bool
	// TTL is how long the object lives from this update on; zero leaves it to expire
	// when it would have, or never.
	TTL time.Duration
	// Permanent makes an object permanent that had a TTL. TTL must be zero then.
	Permanent bool
}

func (o *UpdateOptions) expiry() expiry { return expiry{o.TTL, o.Permanent} }

// Update replaces the object under key by what change makes of its value, and
// returns it as stored. It retries while others write the object in between, so
// change may be called several times. It must not alter its argument, which is
// shared: return a changed copy. A change to an equal value writes nothing.
//
// If reading the backend is I/O, the first try uses the cached object; a value is only
// written if that was the live one. A write whose outcome is unknown
// ([backend.ErrUncertain]) is not tried again.
//
// Errors: [ErrNotFound], [ErrConflict] if a precondition does not hold, what
// change returned, [ErrInvalidKey] if the new value has another key,
// [ErrConfig] if change is nil, TTL negative or set together with Permanent,
// [ErrEngineClosed], ctx's cause, or the backend's error.
func (e *Engine[T]) Update(ctx context.Context, key string, change func(T) (T, error), opts UpdateOptions) (*Object[T], error) {
	if change == nil {
		return nil, &usercode.ConfigError{Field: "change", Problem: "is nil; give a function that returns the new value"}
	}
	o, err := e.core.update(ctx, key, func(_ context.Context, current *store.Object) (*store.Object, error) {
		next := new(Object[T])
		if current != nil {
			next.Value = typed[T](current).Value
		}
		var err error
		next.Value, err = change(next.Value)
		return store.Header(next), err
	}, opts)
	return typed[T](o), err
}

func (e *core) update(ctx context.Context, key string, change backend.UpdateFunc, opts UpdateOptions) (*store.Object, error) {
	if err := e.accepts(); err != nil {
		return nil, err
	}
	return e.beginWrite(ctx).acknowledge(e.storage.GuaranteedUpdate(ctx, key, e.carrying(change, opts.expiry()), e.updateOptions(key, &opts)))
}

// updateOptions returns the storage's options for a write of key.
func (e *core) updateOptions(key string, opts *UpdateOptions) backend.UpdateOptions {
	return backend.UpdateOptions{
		Preconditions: opts.Preconditions, CreateIfMissing: opts.CreateIfMissing, TTL: opts.TTL, Permanent: opts.Permanent,
		Suggestion: e.suggestion(key),
	}
}

// Put stores value under its key, whether there was an object or not, and
// returns it as stored; if an equal one was there already, that. An object that had
// a TTL expires when it would have: [Engine.PutWith] sets another one.
//
// Errors: as for Create and Update.
func (e *Engine[T]) Put(ctx context.Context, value T) (*Object[T], error) {
	return e.PutWith(ctx, value, PutOptions{})
}

// PutOptions qualifies a PutWith. The zero value is a Put.
type PutOptions struct {
	// Key is the object's key. Without [Config].Key it is required; with it, it is
	// left out, or the same as the value's.
	Key string
	// Preconditions must hold for the object that is replaced, or for there being
	// none.
	Preconditions Preconditions
	// TTL and Permanent are as in [UpdateOptions].
	TTL       time.Duration
	Permanent bool
}

// PutWith is Put with options. With a TTL it writes even if there is an equal value,
// whose expiry that changes.
//
// It is the only write of a value that takes the key, too. With the precondition Absent
// it is a Create, with Revision a Replace, except that it fails with [ErrPrecondition] where
// those fail with [ErrExists] and [ErrNotFound].
//
// Errors: as for Create and Update.
func (e *Engine[T]) PutWith(ctx context.Context, value T, opts PutOptions) (*Object[T], error) {
	o, err := e.core.put(ctx, draft(&value), opts)
	return typed[T](o), err
}

func (e *core) put(ctx context.Context, draft *store.Object, opts PutOptions) (*store.Object, error) {
	draft.Key = opts.Key
	o, err := e.updateTo(ctx, draft, &UpdateOptions{
		Preconditions: opts.Preconditions, CreateIfMissing: true, TTL: opts.TTL, Permanent: opts.Permanent,
	})
	err = optionNamed(err, "UpdateOptions.TTL", "PutOptions.TTL")
	return o, optionNamed(err, "UpdateOptions.Permanent", "PutOptions.Permanent")
}

// updateTo updates the object under draft's key, which is that of its value, to draft. The options are a pointer
// since a processor waits where a struct of which it has just written single bytes is copied as a whole.
func (e *core) updateTo(ctx context.Context, draft *store.Object, opts *UpdateOptions) (*store.Object, error) {
	key, err := e.keyOf(draft)
	if err == nil && draft.Key != "" {
		err = store.ValidateKey(draft.Key)
	}
	if err == nil && draft.Key != "" && draft.Key != key {
		err = &store.KeyError{Key: draft.Key, Reason: fmt.Sprintf("the value's own is %q; leave PutOptions.Key out, or give that", key)}
	}
	if err != nil {
		return nil, err
	}
	if err := e.accepts(); err != nil {
		return nil, err
	}
	draft.Key = key
	return e.beginWrite(ctx).acknowledge(e.storage.Put(ctx, draft, e.preparing(opts.expiry()), e.updateOptions(key, opts)))
}

// Replace stores value under its key if the object there is still at revision, that
// of the state that value was made from, and returns it as stored. The expiry does not
// change. It is for values that take long to make, as when a user fills in a form;
// otherwise [Engine.Update] is simpler. To write only if there is no object, call
// [Engine.Create].
//
// Errors: [ErrConflict] if the object is at another revision, [ErrNotFound] if there is
// none, [ErrConfig] if revision is zero, and as for Update.
func (e *Engine[T]) Replace(ctx context.Context, value T, revision Revision) (*Object[T], error) {
	o, err := e.core.replace(ctx, draft(&value), revision)
	return typed[T](o), err
}

func (e *core) replace(ctx context.Context, draft *store.Object, revision Revision) (*store.Object, error) {
	if revision == 0 {
		return nil, &usercode.ConfigError{Field: "revision", Problem: "is zero, which no object has; give that of the object to replace, or call Put"}
	}
	return e.updateTo(ctx, draft, &UpdateOptions{Preconditions: Preconditions{Revision: revision}})
}

// errNoKey: a write needs a key that neither the value has nor the caller gave.
var errNoKey = &usercode.ConfigError{Field: "Key", Problem: "is nil, so values have no key of their own: call PutWith with PutOptions.Key, Update or Modify, or give a function such as func(p Pod) string { return p.Name }"}

// keyOf returns the key of the draft's value or, without [Config].Key, the draft's.
func (e *core) keyOf(draft *store.Object) (key string, err error) {
	if e.cfg.keyless && draft.Key == "" {
		return "", errNoKey
	}
	err = usercode.Call("Config.Key", "", func() { key = e.schema.Key(draft) })
	return key, err
}

// DeleteOptions qualifies a Delete. The zero value deletes whatever object has
// the key.
type DeleteOptions struct {
	// Preconditions must hold for the object that is deleted.
	Preconditions Preconditions
}

// Delete deletes the object under key and returns its last state, with the
// revision of the deletion.
//
// Errors: [ErrNotFound], [ErrConflict] if a precondition does not hold, [ErrConfig] if it is
// Absent, [ErrInvalidKey], [ErrEngineClosed], ctx's cause, or the backend's error.
func (e *Engine[T]) Delete(ctx context.Context, key string, opts DeleteOptions) (*Object[T], error) {
	o, err := e.core.remove(ctx, key, opts, nil)
	return typed[T](o), err
}

// DeleteIf is Delete if allow returns nil for the state that is deleted. Otherwise the
// object stays, and DeleteIf returns allow's error. allow may be called several times for
// one deletion, and must not change the object, which is shared.
//
// Errors: as for Delete, what allow returned, [ErrConfig] if allow is nil, and a
// [*usercode.PanicError] if it panics.
func (e *Engine[T]) DeleteIf(ctx context.Context, key string, allow func(*Object[T]) error, opts DeleteOptions) (*Object[T], error) {
	if allow == nil {
		return nil, &usercode.ConfigError{Field: "allow", Problem: "is nil; give a function that says whether to delete, or call Delete"}
	}
	validate := func(_ context.Context, o *store.Object) error { return allow(typed[T](o)) }
	o, err := e.core.remove(ctx, key, opts, validate)
	return typed[T](o), err
}

func (e *core) remove(ctx context.Context, key string, opts DeleteOptions, validate backend.ValidateFunc) (*store.Object, error) {
	if err := e.accepts(); err != nil {
		return nil, err
	}
	return e.beginWrite(ctx).acknowledge(e.storage.Delete(ctx, key, backend.DeleteOptions{
		Preconditions: opts.Preconditions, Validate: validate, Suggestion: e.suggestion(key),
	}))
}

// emits reports whether there may be events that are not state.
func (e *core) emits() bool {
	_, emitter := e.storage.Backend().(backend.Emitter)
	return emitter
}

// Emit sends value to the watches as an event that is not state: it has a
// revision, passes through the window and can be resumed after, but no Get or
// List shows it.
//
// If the cache has to list again, values that it has not read yet are lost, since no list
// shows them: [Stats].Unseen is an upper bound of their number, and the next emitted
// value has the mark [AfterGap]. In a [Topic] this happens only if a part of the engine
// fails ([Stats].Failures).
//
// Errors: [ErrUnsupported] if the backend cannot emit, [ErrInvalidKey],
// [ErrEngineClosed], a [*usercode.PanicError] if a function of the configuration panics,
// ctx's cause.
func (e *Engine[T]) Emit(ctx context.Context, value T) (Revision, error) {
	return e.core.emit(ctx, draft(&value))
}

func (e *core) emit(ctx context.Context, draft *store.Object) (Revision, error) {
	if err := e.accepts(); err != nil {
		return 0, err
	}
	key, err := e.keyOf(draft)
	if err != nil {
		return 0, err
	}
	draft.Key = key
	if err := e.carryEmitted(ctx, draft); err != nil {
		return 0, err
	}
	if err := backend.Describe(e.schema, draft); err != nil {
		return 0, err
	}
	return e.emitDescribed(ctx, draft)
}

var errCannotEmit = fmt.Errorf("%w: Config.Backend has no method Emit; give storage that is a backend.Emitter, such as memory or bolt", ErrUnsupported)

// emitDescribed emits a draft that has its key, labels and fields.
func (e *core) emitDescribed(ctx context.Context, draft *store.Object) (Revision, error) {
	emitter, ok := e.storage.Backend().(backend.Emitter)
	if !ok {
		return 0, errCannotEmit
	}
	o, err := e.beginWrite(ctx).acknowledge(emitter.Emit(ctx, draft))
	if err != nil {
		return 0, err
	}
	return o.Revision, nil
}

// suggestion returns the cache's object under key for a write to try first, nil for none.
// Where reading the live object is no I/O, it always returns nil.
func (e *core) suggestion(key string) *store.Object {
	if !e.storage.Backend().Traits().Blocks {
		return nil
	}
	return e.inCache(key)
}
