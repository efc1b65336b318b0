package backendtest

import (
	"context"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

type (
	object = store.Object
	event  = store.Event
)

// rig is a backend under test, with the operations that must succeed in one
// word each.
type rig struct {
	T
	Harness
	ctx context.Context
}

func newRig(t T, h Harness) *rig {
	if h.Patience == 0 {
		h.Patience = 30 * time.Second
	}
	return &rig{T: t, Harness: h, ctx: t.Context()}
}

// put writes text under key, over the object prev or none.
func (r *rig) put(key, text string, prev *object) *object {
	r.Helper()
	return r.putFor(0, key, text, prev)
}

func (r *rig) create(key, text string) *object { r.Helper(); return r.put(key, text, nil) }

func (r *rig) update(prev *object, text string) *object {
	r.Helper()
	return r.put(prev.Key, text, prev)
}

// putFor is put with a TTL.
func (r *rig) putFor(ttl time.Duration, key, text string, prev *object) *object {
	r.Helper()
	o, err := r.tryPut(draft(key, text), prev, backend.PutOptions{TTL: ttl})
	require.NoError(r, err, "Put %q=%q with TTL %v over %s", key, text, ttl, describe(prev))
	return o
}

// tryPut is a Put that may fail.
func (r *rig) tryPut(draft, prev *object, opts backend.PutOptions) (*object, error) {
	return r.Backend.Put(r.ctx, draft, prev, opts)
}

// draft returns an item to be written.
func draft(key, text string) *object { return Draft(Value{Key: key, Text: text}) }

// at returns what stands for the object under key at a revision.
func at(key string, rev store.Revision) *object {
	o := draft(key, "")
	o.Revision = rev
	return o
}

// textOf returns an item's text.
func textOf(o *object) string { return store.As[Item](o).Value.Text }

func (r *rig) remove(o *object) *object {
	r.Helper()
	gone, err := r.Backend.Remove(r.ctx, o)
	require.NoError(r, err, "Remove %q at revision %d", o.Key, o.Revision)
	return gone
}

func (r *rig) list(opts backend.ListOptions) *backend.List {
	r.Helper()
	l, err := r.Backend.List(r.ctx, opts)
	require.NoError(r, err, "List %+v", opts)
	require.NotNil(r, l.Items, "Items must never be nil: List %+v", opts)
	return l
}

func (r *rig) revision() store.Revision {
	r.Helper()
	rev, err := r.Backend.Revision(r.ctx)
	require.NoError(r, err, "Revision")
	return rev
}

func (r *rig) compact(rev store.Revision) {
	r.Helper()
	require.NoError(r, r.Backend.Compact(r.ctx, rev), "Compact %d", rev)
}

// holds demands that Get and List find exactly the objects, in their order.
func (r *rig) holds(objects ...*object) {
	r.Helper()
	r.lists(backend.ListOptions{}, objects...)
	for _, want := range objects {
		got, err := r.Backend.Get(r.ctx, want.Key)
		require.NoError(r, err, "Get %q", want.Key)
		require.Equal(r, describe(want), describe(got), "Get %q", want.Key)
	}
}

// lists demands that List returns exactly the objects, in their order.
func (r *rig) lists(opts backend.ListOptions, objects ...*object) *backend.List {
	r.Helper()
	l := r.list(opts)
	require.Equal(r, describeAll(objects), describeAll(l.Items), "List %+v", opts)
	return l
}

// fails demands that what was called failed with the error target.
func (r *rig) fails(err, target error, what string, args ...any) {
	r.Helper()
	require.ErrorIs(r, err, target, append([]any{what}, args...)...)
}

// describe prints all of an object that must survive storage.
func describe(o *object) string {
	if o == nil {
		return "<nil>"
	}
	return fmt.Sprintf("%s=%+v @%d created@%d labels{%v} fields{%v} expires(%v)",
		o.Key, store.As[Item](o).Value, o.Revision, o.Created, o.Labels, o.Fields, o.Expires.UTC())
}

func describeAll(objects []*object) []string {
	texts := make([]string, 0, len(objects))
	for _, o := range objects {
		texts = append(texts, describe(o))
	}
	return texts
}
