package registry

import (
	"context"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry/internal/convert"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/usercode"
)

// Conversion turns values into the form in which storage has them, and back: for a kind that is
// stored in another version, or whose schema has changed since an object was stored. Each
// function returns a value, and whether that differs from the one given, which it must not change,
// nor anything that it points to. They must be pure, and are called concurrently.
//
// FromStorage should change nothing of what ToStorage has made: a cache shares the state of storage
// in memory only as long as FromStorage has nothing to convert. In another version than that of storage
// it cannot help that.
//
// A value keeps the apiVersion of the version that has written it, unless a function sets another. A server
// shows that of the version that is asked for.
type Conversion[T any] struct {
	// ToStorage converts a value that is about to be stored. Nil stores it as it is.
	ToStorage func(value T) (stored T, differs bool)
	// FromStorage converts a value from storage, once for each state of an object: readers share
	// the result. Nil shows it as it is.
	FromStorage func(stored T) (value T, differs bool)
}

// useConversion sets the backend of the configuration to one that converts, and returns that; nil if
// there is nothing to convert: objects in memory of the engine's own have all been stored by it.
func useConversion[T any, P Ptr[T]](c *Config[T]) *convert.Backend {
	if c.Conversion == nil || c.Engine.Backend == nil || forwarderOf(c.Engine.Backend) != nil {
		return nil
	}
	schema := engineConfig[T, P](c).Schema()
	b := convert.New(c.Engine.Backend, &schema, convert.Conversion{
		ToStorage:   ofObjects(&schema, "Conversion.ToStorage", c.Conversion.ToStorage),
		FromStorage: described[T, P](c, &schema, ofObjects(&schema, "Conversion.FromStorage", c.Conversion.FromStorage)),
	})
	c.Engine.Backend = b.Emitting()
	return b
}

// ofObjects returns a function of a [Conversion] as one of objects. Its error is the function's
// panic.
func ofObjects[T any](schema *store.Schema, name string, of func(T) (T, bool)) func(*store.Object) (*store.Object, error) {
	return func(o *store.Object) (*store.Object, error) {
		if of == nil {
			return o, nil
		}
		var value T
		differs := false
		if err := usercode.Call(name, o.Key, func() { value, differs = of(*valueOf[T](o)) }); err != nil {
			return nil, err
		}
		if !differs {
			return o, nil
		}
		c := schema.Clone(o)
		*valueOf[T](c) = value
		return c, backend.Describe(schema, c)
	}
}

// described returns a conversion from storage that describes an object anew if storage has it by the fields that
// another store over it has, or had.
func described[T any, P Ptr[T]](c *Config[T], schema *store.Schema, from func(*store.Object) (*store.Object, error)) func(*store.Object) (*store.Object, error) {
	all := fieldsOf[T, P](c)
	fields := make([]func(*T) string, 0, len(all)) // in the order of an object's
	for _, name := range schema.Fields {
		fields = append(fields, all[name])
	}
	hasOwn := len(c.Fields) > 0
	return func(o *store.Object) (*store.Object, error) {
		shown, err := from(o)
		if err != nil || shown != o {
			return shown, err
		}
		same := len(o.Fields) == len(fields)
		if same && hasOwn { // otherwise they are those of every kind
			if same, err = hasFields(o, fields); err != nil {
				return nil, err
			}
		}
		if same {
			return o, nil
		}
		shown = schema.Clone(o)
		return shown, backend.Describe(schema, shown)
	}
}

// hasFields reports whether the fields of an object are what these functions return for it. The error is the panic of
// one of them.
func hasFields[T any](o *store.Object, by []func(*T) string) (same bool, err error) {
	err = usercode.Call("Config.Fields", o.Key, func() {
		value := *valueOf[T](o) // the object is shared
		for i, get := range by {
			if get(&value) != o.Fields[i] {
				return
			}
		}
		same = true
	})
	return same, err
}

// storageOf returns the storage that takes the writes of a store over e. With a conversion the
// update itself finds out whether it changes anything, see [core.unlessStored].
func storageOf[T any](e *engine.Engine[T], schema store.Schema, converts bool) *backend.Storage {
	if converts {
		schema.Equal = func(a, b *store.Object) bool { return false }
	}
	return backend.NewStorage(engine.WriterOf(e), schema)
}

// unlessStored returns a [*settled] if storage has the draft of an update already, and the error
// of finding that out. Without a conversion, storage sees that itself, unless the kind has a TTL: then it
// writes even what it has, to set that anew.
func (c *core) unlessStored(ctx context.Context, draft, current *store.Object) (err error) {
	same := false
	switch {
	case current == nil:
		return nil
	case c.converts != nil:
		same, err = c.converts.Has(ctx, draft, current)
	case c.ttl > 0:
		same = c.form.schema.Equal(draft, current)
	}
	if err == nil && same {
		return &settled{draft: current}
	}
	return err
}

// pretended returns the draft of a dry run as it would be shown after it had been stored.
func (c *core) pretended(draft *store.Object) (*store.Object, error) {
	if c.converts != nil {
		var err error
		if draft, err = c.converts.RoundTrip(draft); err != nil {
			return nil, err
		}
	}
	return draft, backend.Describe(&c.form.schema, draft)
}
