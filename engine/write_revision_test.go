package engine_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/usercode"
)

// versioned is a value that carries its revision, and is shared by pointer.
type versioned struct {
	Name string
	N    int
	Rev  engine.Revision
}

// stamps counts the calls of SetRevision.
type stamps struct {
	mu   sync.Mutex
	revs []engine.Revision
}

func (s *stamps) set(v *versioned, rev engine.Revision) *versioned {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v.N < 0 {
		panic("no")
	}
	s.revs = append(s.revs, rev)
	stamped := *v
	stamped.Rev = rev
	return &stamped
}

func (s *stamps) all() []engine.Revision {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.revs)
}

// newVersioned returns an engine whose values carry their revisions.
func newVersioned(t *testing.T, change func(*engine.Config[*versioned])) (*engine.Engine[*versioned], *stamps) {
	s := &stamps{}
	c := engine.Config[*versioned]{
		Key: func(v *versioned) string { return v.Name }, SetRevision: s.set, FirstRevision: 1, FreshnessTimeout: patience,
	}
	if change != nil {
		change(&c)
	}
	e, err := engine.New(c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	require.NoError(t, e.WaitForRevision(t.Context(), 1))
	return e, s
}

// SetRevision runs once for each write, and every reader sees what it returns.
func TestSetRevision_RunsOnceAtCommit(t *testing.T) {
	for name, change := range map[string]func(*engine.Config[*versioned]){
		"cache": nil, "no cache": func(c *engine.Config[*versioned]) { c.NoCache = true },
	} {
		t.Run(name, func(t *testing.T) {
			e, s := newVersioned(t, change)
			ctx := t.Context()
			w, err := e.Watch(ctx, engine.WatchOptions{})
			require.NoError(t, err)
			given := &versioned{Name: "a"}
			created, err := e.Create(ctx, given)
			require.NoError(t, err)
			require.Zero(t, given.Rev, "the caller's value stays as it is")
			count := func(v *versioned) (*versioned, error) { next := *v; next.N++; return &next, nil }
			updated, err := e.Update(ctx, "a", count, engine.UpdateOptions{})
			require.NoError(t, err)
			same, err := e.Update(ctx, "a", func(v *versioned) (*versioned, error) { return v, nil }, engine.UpdateOptions{})
			require.NoError(t, err)
			require.Equal(t, updated, same, "an equal value writes nothing")
			emitted, err := e.Emit(ctx, given)
			require.NoError(t, err)
			gone, err := e.Delete(ctx, "a", engine.DeleteOptions{})
			require.NoError(t, err)
			for _, read := range []engine.Read{engine.Latest(), engine.Exactly(updated.Revision)} {
				for range 3 {
					_, err = e.List(ctx, engine.ListOptions{Read: read})
					require.NoError(t, err)
				}
			}
			past, err := e.List(ctx, engine.ListOptions{Read: engine.Exactly(updated.Revision)})
			require.NoError(t, err)
			require.Same(t, updated.Value, past.Items[0].Value, "reads share the value")
			for _, o := range []*engine.Object[*versioned]{created, updated, gone} {
				require.Equal(t, o.Revision, o.Value.Rev)
			}
			for ev, err := range w.Events() {
				require.NoError(t, err)
				require.Equal(t, ev.Revision, ev.Object.Value.Rev, "%v", ev)
				if ev.Prev != nil {
					require.Equal(t, ev.Prev.Revision, ev.Prev.Value.Rev, "%v", ev)
				}
				if ev.Revision == gone.Revision {
					break
				}
			}
			require.Equal(t, []engine.Revision{created.Revision, updated.Revision, emitted, gone.Revision}, s.all())
		})
	}
}

// An object that expires carries the revision of its deletion.
func TestSetRevision_OfAnExpiredObject(t *testing.T) {
	clock := engine.NewVirtualClock(epoch)
	e, _ := newVersioned(t, func(c *engine.Config[*versioned]) { c.Host = hostFor(t, engine.HostConfig{Clock: clock}) })
	w, err := e.Watch(t.Context(), engine.WatchOptions{})
	require.NoError(t, err)
	_, err = e.CreateWith(t.Context(), &versioned{Name: "a"}, engine.CreateOptions{TTL: time.Second})
	require.NoError(t, err)
	clock.Advance(time.Second)
	for ev, err := range w.Events() {
		require.NoError(t, err)
		require.Equal(t, ev.Revision, ev.Object.Value.Rev)
		if ev.Type == engine.Deleted {
			break
		}
	}
}

func TestSetRevision_ThatPanicsFailsTheWrite(t *testing.T) {
	e, s := newVersioned(t, nil)
	ctx := t.Context()
	created, err := e.Create(ctx, &versioned{Name: "a"})
	require.NoError(t, err)
	_, create := e.Create(ctx, &versioned{Name: "b", N: -1})
	_, put := e.Put(ctx, &versioned{Name: "a", N: -1})
	_, emit := e.Emit(ctx, &versioned{Name: "c", N: -1})
	for _, err := range []error{create, put, emit} {
		wanted{usercode.ErrPanic, []string{"SetRevision", "no"}}.require(t, err)
	}
	l, err := e.List(ctx, engine.ListOptions{})
	require.NoError(t, err)
	require.Equal(t, []*engine.Object[*versioned]{created}, l.Items, "nothing was written")
	require.Equal(t, created.Revision, l.Revision)
	require.Len(t, s.all(), 1)
	_, err = e.Put(ctx, &versioned{Name: "a", N: 1})
	require.NoError(t, err, "storage goes on")
}

// The detector of mutations takes the revision for no mutation, but finds a function
// that changes its argument.
func TestSetRevision_UnderTheDetectorOfMutations(t *testing.T) {
	for name, inPlace := range map[string]bool{"a copy": false, "in place": true} {
		t.Run(name, func(t *testing.T) {
			found := &mutations{}
			e, _ := newVersioned(t, func(c *engine.Config[*versioned]) {
				c.DetectMutations, c.OnError = true, found.report
				if inPlace {
					c.SetRevision = func(v *versioned, rev engine.Revision) *versioned { v.Rev = rev; return v }
				}
			})
			_, err := e.Put(t.Context(), &versioned{Name: "a"})
			require.NoError(t, err)
			require.NoError(t, e.Close())
			require.Equal(t, inPlace, len(found.all()) > 0, "%v", found.all())
		})
	}
}
