package enginetest

import (
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/usercode"
)

// Create creates the object and returns it as stored.
func (e *Engine[T]) Create(value T) *engine.Object[T] {
	e.t.Helper()
	o, err := e.engine.Create(e.t.Context(), value)
	e.must(err, "Create")
	return o
}

// Put creates or replaces the object and returns it as stored.
func (e *Engine[T]) Put(value T) *engine.Object[T] {
	e.t.Helper()
	o, err := e.engine.Put(e.t.Context(), value)
	e.must(err, "Put")
	return o
}

// Update replaces the object under key by what change makes of a copy of its
// value, and returns it as stored.
func (e *Engine[T]) Update(key string, change func(T) T) *engine.Object[T] {
	e.t.Helper()
	o, err := e.engine.Update(e.t.Context(), key, func(v T) (T, error) { return change(v), nil }, engine.UpdateOptions{})
	e.must(err, "Update", key)
	return o
}

// Delete deletes the object under key and returns its last state.
func (e *Engine[T]) Delete(key string) *engine.Object[T] {
	e.t.Helper()
	o, err := e.engine.Delete(e.t.Context(), key, engine.DeleteOptions{})
	e.must(err, "Delete", key)
	return o
}

// Emit sends value as an event that is not state.
func (e *Engine[T]) Emit(value T) engine.Revision {
	e.t.Helper()
	rev, err := e.engine.Emit(e.t.Context(), value)
	e.must(err, "Emit")
	return rev
}

// Get returns the newest object under key.
func (e *Engine[T]) Get(key string) *engine.Object[T] {
	e.t.Helper()
	o, err := e.engine.Get(e.t.Context(), key, engine.GetOptions{})
	e.must(err, "Get", key)
	return o
}

// List returns the objects that opts ask for.
func (e *Engine[T]) List(opts engine.ListOptions) *engine.List[T] {
	e.t.Helper()
	list, err := e.engine.List(e.t.Context(), opts)
	e.must(err, "List")
	return list
}

// Watch starts a watch to be given to the expectations. It ends with the test.
func (e *Engine[T]) Watch(opts engine.WatchOptions) *Watch[T] {
	e.t.Helper()
	if opts.Name == "" {
		opts.Name = usercode.Caller(1).String()
	}
	w, err := e.engine.Watch(e.t.Context(), opts)
	e.must(err, "Watch")
	return e.Adopt(w)
}

// must fails the test if err is not nil.
func (e *Engine[T]) must(err error, call string, about ...string) {
	e.t.Helper()
	if err == nil {
		return
	}
	if len(about) > 0 {
		e.t.Fatalf("enginetest: %s %q: %v", call, about[0], err)
	}
	e.t.Fatalf("enginetest: %s: %v", call, err)
}

// Adopt returns a Watch for a watch on this engine that was started in
// another way, so that expectations can be put on it.
func (e *Engine[T]) Adopt(w *engine.Watch[T]) *Watch[T] {
	return &Watch[T]{Watch: w, engine: e.engine, patience: e.options.Patience}
}
