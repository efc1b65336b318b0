package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/tree"
)

// ByIndex returns the cached objects whose indexed field or label has value, in
// key order. Index is a name given in [Config].Index or [Config].IndexLabels; a
// name given in both is the field's.
//
// It reads as [Cached] does; without a cache it reads all objects of the backend.
//
// Errors: [ErrUnknownIndex], [ErrNotReady], [ErrEngineClosed], ctx's cause, or the
// backend's error.
func (e *Engine[T]) ByIndex(ctx context.Context, index, value string) ([]*Object[T], error) {
	found, err := e.core.byIndex(ctx, index, value)
	return store.AsObjects[Object[T]](found), err
}

func (e *core) byIndex(ctx context.Context, index, value string) ([]*store.Object, error) {
	if err := e.alive(); err != nil {
		return nil, err
	}
	attribute, err := e.attribute(index)
	if err != nil {
		return nil, err
	}
	if !e.cfg.cached() {
		return e.byAttribute(ctx, attribute, value)
	}
	snap, err := e.reached(ctx, 0)
	if err != nil {
		return nil, err
	}
	found, err := snap.State().ByIndex(attribute, value, "", "")
	if err != nil {
		return nil, err
	}
	return slices.AppendSeq([]*store.Object{}, found), nil
}

// byAttribute is ByIndex without an index.
func (e *core) byAttribute(ctx context.Context, a store.Attribute, value string) ([]*store.Object, error) {
	all, err := e.storage.List(ctx, backend.ListOptions{})
	if err != nil {
		return nil, e.translateStorage(err)
	}
	return slices.AppendSeq([]*store.Object{}, tree.WithValue(slices.Values(all.Items), a, value)), nil
}

func (e *core) attribute(index string) (store.Attribute, error) {
	declared := e.cfg.indexes
	for _, a := range declared {
		if a.Name == index {
			return a, nil
		}
	}
	return store.Attribute{}, fmt.Errorf("%w: %q is not one of %v: add it to Config.Index or Config.IndexLabels", ErrUnknownIndex, index, declared)
}
