package engine_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// An engine that is being drained refuses all that could be left undelivered, and goes on with
// what cannot.
func TestDrain_RefusesEveryWrite(t *testing.T) {
	for _, noCache := range []bool{false, true} {
		t.Run(map[bool]string{false: "cache", true: "no cache"}[noCache], func(t *testing.T) {
			e, ctx := newEngine(t, func(c *engine.Config[pod]) { c.NoCache = noCache })
			held, release := make(chan struct{}), make(chan struct{})
			_, err := e.Handle(ctx, engine.WatchOptions{}, func(engine.Event[pod]) {
				close(held)
				<-release
			})
			require.NoError(t, err)
			a, err := e.Create(ctx, pod{Name: "a"})
			require.NoError(t, err)
			<-held
			var drained sync.WaitGroup
			defer func() {
				close(release)
				drained.Wait()
			}()
			drained.Go(func() {
				if err := e.Drain(ctx); err != nil {
					t.Error(err)
				}
			})
			eventually(t, ctx, func() bool {
				_, err := e.Watch(ctx, engine.WatchOptions{})
				return err != nil
			})
			same := func(p pod) (pod, error) { return p, nil }
			modify := func(*engine.Object[pod]) (engine.Change[pod], error) { return engine.Change[pod]{Delete: true}, nil }
			allow := func(*engine.Object[pod]) error { return nil }
			writer := engine.WriterOf(e)
			stored, err := writer.Get(ctx, "a")
			require.NoError(t, err, "reads go on")
			for name, err := range map[string]error{
				"Create":         errorOf(e.Create(ctx, pod{Name: "b"})),
				"Put":            errorOf(e.Put(ctx, pod{Name: "b"})),
				"Update":         errorOf(e.Update(ctx, "a", same, engine.UpdateOptions{})),
				"Modify":         errorOf(e.Modify(ctx, "a", modify, engine.ModifyOptions{})),
				"Replace":        errorOf(e.Replace(ctx, pod{Name: "a", N: 1}, a.Revision)),
				"Delete":         errorOf(e.Delete(ctx, "a", engine.DeleteOptions{})),
				"DeleteIf":       errorOf(e.DeleteIf(ctx, "a", allow, engine.DeleteOptions{})),
				"Emit":           errorOf(e.Emit(ctx, pod{Name: "b"})),
				"Compact":        e.Compact(ctx, a.Revision),
				"writer.Put":     errorOf(writer.Put(ctx, draftOf(cfg(), pod{Name: "b"}), nil, backend.PutOptions{})),
				"writer.Remove":  errorOf(writer.Remove(ctx, stored)),
				"writer.Compact": writer.Compact(ctx, a.Revision),
			} {
				require.ErrorIs(t, err, engine.ErrDraining, name)
			}
			now, err := e.List(ctx, engine.ListOptions{})
			require.NoError(t, err)
			require.Equal(t, a.Revision, now.Revision, "nothing was written")
		})
	}
}

// A compaction by the engine's backend is one of the engine: the cache gives up the past, too.
func TestWriterOf_CompactsTheCacheToo(t *testing.T) {
	e, ctx := newEngine(t, nil)
	var revs []store.Revision
	for n := range 3 {
		rev, err := revisionOf(e.Put(ctx, pod{Name: "a", N: n}))
		require.NoError(t, err)
		revs = append(revs, rev)
	}
	require.NoError(t, e.WaitForRevision(ctx, revs[2]))
	require.NoError(t, engine.WriterOf(e).Compact(ctx, revs[2]))
	_, err := e.Watch(ctx, engine.WatchOptions{From: revs[0]})
	require.ErrorIs(t, err, engine.ErrExpired)
	require.ErrorIs(t, engine.WriterOf(e).Compact(context.WithoutCancel(ctx), revs[2]+1), engine.ErrFuture)
}

// unaskable is a watch of storage that cannot be asked how far it is.
type unaskable struct{ backend.Watcher }

// That storage cannot be asked is not an error to tell of.
func TestDrain_OfStorageThatCannotBeAskedReportsNothing(t *testing.T) {
	l := newLasting(t)
	l.watch = func(_ backend.WatchOptions, w backend.Watcher) backend.Watcher { return unaskable{w} }
	host := newHost(t, engine.HostConfig{Clock: engine.NewVirtualClock(epoch), Executor: engine.NewSeededExecutor(1)})
	var reported []error
	e, ctx := newEngine(t, func(c *engine.Config[pod]) {
		c.Host, c.Backend, c.NoCache = host, l, true
		c.OnError = func(err error) { reported = append(reported, err) }
	})
	var got []string
	_, err := e.Handle(ctx, engine.WatchOptions{}, func(ev engine.Event[pod]) { got = append(got, ev.Key()) })
	require.NoError(t, err)
	_, err = e.Create(ctx, pod{Name: "a"}) // which the watch has not read when it is drained
	require.NoError(t, err)
	require.NoError(t, e.Drain(ctx))
	require.Equal(t, []string{"a"}, got)
	require.Empty(t, reported)
}
