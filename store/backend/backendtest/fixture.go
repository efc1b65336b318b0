package backendtest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

type (
	object = store.Object
	event  = store.Event
)

// fixture is a backend under test, with methods for operations that must succeed.
type fixture struct {
	T
	Harness
	ctx context.Context
}

func newFixture(t T, h Harness) *fixture {
	if h.Patience == 0 {
		h.Patience = 30 * time.Second
	}
	return &fixture{T: t, Harness: h, ctx: t.Context()}
}

// put writes text under key, in place of prev, which is nil if there is none.
func (x *fixture) put(key, text string, prev *object) *object {
	x.Helper()
	return x.putFor(0, key, text, prev)
}

func (x *fixture) create(key, text string) *object { x.Helper(); return x.put(key, text, nil) }

func (x *fixture) update(prev *object, text string) *object {
	x.Helper()
	return x.put(prev.Key, text, prev)
}

// putFor is put with a TTL.
func (x *fixture) putFor(ttl time.Duration, key, text string, prev *object) *object {
	x.Helper()
	o, err := x.tryPut(draft(key, text), prev, backend.PutOptions{TTL: ttl})
	require.NoError(x, err, "Put %q=%q with TTL %v over %s", key, text, ttl, describe(prev))
	return o
}

// tryPut is a Put that may fail.
func (x *fixture) tryPut(draft, prev *object, opts backend.PutOptions) (*object, error) {
	return x.Backend.Put(x.ctx, draft, prev, opts)
}

// draft returns an item to write.
func draft(key, text string) *object { return Draft(Value{Key: key, Text: text}) }

// at returns an object with a key and a revision, for calls that use nothing else.
func at(key string, rev store.Revision) *object {
	o := draft(key, "")
	o.Revision = rev
	return o
}

// textOf returns an item's text.
func textOf(o *object) string { return store.As[Item](o).Value.Text }

func (x *fixture) remove(o *object) *object {
	x.Helper()
	gone, err := x.Backend.Remove(x.ctx, o)
	require.NoError(x, err, "Remove %q at revision %d", o.Key, o.Revision)
	return gone
}

func (x *fixture) list(opts backend.ListOptions) *backend.List {
	x.Helper()
	l, err := x.Backend.List(x.ctx, opts)
	require.NoError(x, err, "List %+v", opts)
	require.NotNil(x, l.Items, "Items must never be nil: List %+v", opts)
	return l
}

func (x *fixture) revision() store.Revision {
	x.Helper()
	rev, err := x.Backend.Revision(x.ctx)
	require.NoError(x, err, "Revision")
	return rev
}

func (x *fixture) compact(rev store.Revision) {
	x.Helper()
	require.NoError(x, x.Backend.Compact(x.ctx, rev), "Compact %d", rev)
}

// holds checks that Get and List find exactly the objects, in their order.
func (x *fixture) holds(objects ...*object) {
	x.Helper()
	x.lists(backend.ListOptions{}, objects...)
	for _, want := range objects {
		got, err := x.Backend.Get(x.ctx, want.Key)
		require.NoError(x, err, "Get %q", want.Key)
		require.Equal(x, describe(want), describe(got), "Get %q", want.Key)
	}
}

// lists checks that List returns exactly the objects, in their order.
func (x *fixture) lists(opts backend.ListOptions, objects ...*object) *backend.List {
	x.Helper()
	l := x.list(opts)
	require.Equal(x, describeAll(objects), describeAll(l.Items), "List %+v", opts)
	return l
}

// fails checks that a call failed with the error target.
func (x *fixture) fails(err, target error, what string, args ...any) {
	x.Helper()
	require.ErrorIs(x, err, target, append([]any{what}, args...)...)
}

// inapplicable reports that the check does not apply to the backend. A T with a Skip, as
// that of the testing package, ends there, so that its report does not count the check
// as passed. For others it returns false, and the check returns.
func (x *fixture) inapplicable(why string) bool {
	x.Helper()
	if t, ok := x.T.(interface{ Skip(args ...any) }); ok {
		t.Skip("the check does not apply: " + why)
	}
	return false
}

// describe prints everything of an object that storage must keep: when it was written it need
// not know, as of what other programs wrote.
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

// writers are goroutines that write, each under keys of its own.
type writers struct {
	total int // writes in all
	group sync.WaitGroup
	mu    sync.Mutex
	wrote []store.Revision
	err   error
}

// write starts n writers that create each objects under prefix.
func (x *fixture) write(n, each int, prefix string) *writers {
	ws := &writers{total: n * each}
	for w := range n {
		ws.group.Go(func() {
			for i := range each {
				key := fmt.Sprintf("%s/%d/%d", prefix, w, i)
				ws.record(x.tryPut(draft(key, ""), nil, backend.PutOptions{}))
			}
		})
	}
	return ws
}

func (ws *writers) record(o *object, err error) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if err != nil {
		ws.err = err
		return
	}
	ws.wrote = append(ws.wrote, o.Revision)
}

// wait returns the revisions of all the writes, in order.
func (ws *writers) wait(x *fixture) []store.Revision {
	x.Helper()
	ws.group.Wait()
	require.NoError(x, ws.err)
	slices.Sort(ws.wrote)
	return ws.wrote
}
