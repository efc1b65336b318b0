package convert

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/tree"
)

// Conversion converts objects into the form in which storage has them, and back. Its functions
// are pure, and called concurrently. They return their argument, which is shared, if it has the
// form already, else a new object with its own labels and fields.
type Conversion struct {
	ToStorage, FromStorage func(*store.Object) (*store.Object, error)
}

// Backend is storage whose objects are shown in another form.
type Backend struct {
	backend.Backend
	schema *store.Schema
	conversion
	// differs: the newest list that could be shared, or an event after it, had an object that
	// storage has in another form.
	differs atomic.Bool
	// cached returns what a cache above has under a key; nil if there is no cache.
	cached atomic.Pointer[func(key string) *store.Object]
}

// conversion is a [Conversion] as a [Backend] has it.
type conversion struct{ Conversion }

// New returns b with objects of that schema in another form.
func New(b backend.Backend, schema *store.Schema, by Conversion) *Backend {
	return &Backend{Backend: b, schema: schema, conversion: conversion{by}}
}

// Unwrap returns the storage.
func (b *Backend) Unwrap() backend.Backend { return b.Backend }

// ReadFrom makes Get return the object of a cache above, if that has the same state. cached returns
// what the cache has under a key, nil for nothing.
func (b *Backend) ReadFrom(cached func(key string) *store.Object) { b.cached.Store(&cached) }

// Get returns the newest object under key; see [backend.Backend].
func (b *Backend) Get(ctx context.Context, key string) (*store.Object, error) {
	o, err := b.Backend.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	if cached := b.cached.Load(); cached != nil {
		if shown := (*cached)(key); shown != nil && isSame(o, shown) {
			return shown, nil
		}
	}
	return b.FromStorage(o)
}

// isSame reports whether two objects of one key are the same state.
func isSame(a, b *store.Object) bool {
	return a.Revision == b.Revision && a.Created == b.Created && a.Written.Equal(b.Written)
}

// Put stores draft in storage's form. Once that has been done, it is not an error that the stored
// object cannot be shown: then it is returned as it is.
func (b *Backend) Put(ctx context.Context, draft, prev *store.Object, opts backend.PutOptions) (*store.Object, error) {
	draft, err := b.ToStorage(draft)
	if err != nil {
		return nil, err
	}
	o, err := b.Backend.Put(ctx, draft, prev, opts)
	if err != nil {
		return o, b.shownConflict(err)
	}
	if shown, err := b.FromStorage(o); err == nil {
		o = shown
	}
	return o, nil
}

// Remove deletes the object under prev's key. Its last state is that of prev, if prev is a whole
// object: storage may take it from there, too.
func (b *Backend) Remove(ctx context.Context, prev *store.Object) (*store.Object, error) {
	gone, err := b.Backend.Remove(ctx, prev)
	if err != nil {
		return gone, b.shownConflict(err)
	}
	shown, err := b.FromStorage(gone)
	switch {
	case err != nil || shown == gone:
		return gone, nil
	case prev.Created != 0:
		return b.schema.Gone(prev, gone.Revision, gone.Written), nil
	}
	return shown, nil
}

// shownConflict returns an error of storage with its object as it is shown.
func (b *Backend) shownConflict(err error) error {
	of, is := errors.AsType[*backend.ConflictError](err)
	if !is || of.Current == nil {
		return err
	}
	shown, failed := b.FromStorage(of.Current)
	if failed != nil {
		return failed
	}
	if shown == of.Current {
		return err
	}
	return &backend.ConflictError{Key: of.Key, Expected: of.Expected, Current: shown}
}

// List returns a page of objects; see [backend.ListerWatcher]. Storage's own state is in it only if
// all objects have the right form. If not, the objects of that state are, whatever the limit.
func (b *Backend) List(ctx context.Context, opts backend.ListOptions) (*backend.List, error) {
	page, err := b.Backend.List(ctx, opts)
	if err != nil || page == nil {
		return page, err
	}
	if page.State != nil {
		differs, err := b.anyDiffers(page.State)
		b.differs.Store(differs)
		if err != nil || !differs {
			return page, err
		}
		page.Items, page.State = page.State.AppendTo(page.Items, ""), nil
	}
	page.Items, err = b.shownAll(page.Items)
	return page, err
}

// anyDiffers reports whether storage has an object of a state in another form.
func (b *Backend) anyDiffers(state *tree.View) (bool, error) {
	for o := range state.All("", "") {
		if shown, err := b.FromStorage(o); err != nil || shown != o {
			return true, err
		}
	}
	return false, nil
}

// shownAll returns objects as they are shown. It changes no slice of storage.
func (c *conversion) shownAll(objects []*store.Object) ([]*store.Object, error) {
	var all []*store.Object
	for i, o := range objects {
		shown, err := c.FromStorage(o)
		if err != nil {
			return nil, err
		}
		if shown != o && all == nil {
			all = append(make([]*store.Object, 0, len(objects)), objects[:i]...)
		}
		if all != nil {
			all = append(all, shown)
		}
	}
	if all == nil {
		return objects, nil
	}
	return all, nil
}

// RoundTrip returns an object that is not to be stored as it would be shown afterwards.
func (b *Backend) RoundTrip(draft *store.Object) (*store.Object, error) {
	stored, err := b.ToStorage(draft)
	if err != nil {
		return nil, err
	}
	return b.FromStorage(stored)
}

// Has reports whether storage has the draft already, in place of current, which this Backend has
// returned. It compares storage's forms, so an object that looks the same is still stored if
// storage has it in an older form. It reads storage only if the draft looks the same.
func (b *Backend) Has(ctx context.Context, draft, current *store.Object) (bool, error) {
	stored, err := b.ToStorage(draft)
	if err != nil {
		return false, err
	}
	shown, err := b.FromStorage(stored)
	if err != nil || !b.schema.Equal(shown, current) {
		return false, err
	}
	now, err := b.Backend.Get(ctx, current.Key)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return false, nil
	case err != nil:
		return false, err
	}
	return now.Revision == current.Revision && b.schema.Equal(now, stored), nil
}
