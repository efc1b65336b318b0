package engine_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store/backend"
)

// A Get of Kubernetes with resource version "" is Latest, with 0 Cached, with n
// NotOlderThan.
func TestGet_ByEachRead(t *testing.T) {
	f := newReadFixture(t)
	first := f.put("a", "web", 1)
	second := f.put("a", "web", 2)
	f.gets("a", engine.Latest(), "a=2@3", "get")
	f.gets("a", engine.Cached(), "a=2@3", "nothing")
	f.gets("a", engine.NotOlderThan(first), "a=2@3", "nothing")
	f.gets("a", engine.NotOlderThan(second), "a=2@3", "nothing")
	f.gets("a", engine.Exactly(first), "a=1@2", "nothing")
	f.gets("a", engine.Exactly(second), "a=2@3", "nothing")
	f.gets("b", engine.Latest(), "not found", "get")
	f.gets("b", engine.Cached(), "not found", "nothing")
	f.gets("b", engine.NotOlderThan(second), "not found", "nothing")
	f.gets("b", engine.Exactly(second), "not found", "nothing")
	f.gets("a", engine.Exactly(1), "not found", "nothing")
	_, err := f.Get(t.Context(), "a", engine.GetOptions{Read: engine.Exactly(0)})
	require.ErrorIs(t, err, engine.ErrInvalidRead)
}

// A cached Get never touches storage, a linearizable one always does: also
// while the cache lags.
func TestGet_BypassesTheCacheOnlyForTheLatest(t *testing.T) {
	f := newReadFixture(t)
	f.put("a", "web", 1)
	f.setHeld(true)
	rev := f.put("a", "web", 2)
	f.gets("a", engine.Cached(), "a=1@2", "nothing")
	f.gets("a", engine.Latest(), "a=2@3", "get")
	f.setHeld(false)
	f.gets("a", engine.NotOlderThan(rev), "a=2@3", "nothing")
}

func TestGet_WaitsUntilTheCacheIsFresh(t *testing.T) {
	f := newReadFixture(t)
	f.setHeld(true)
	rev := f.put("a", "web", 1)
	f.clock.AfterFunc(2*time.Second, func() { f.setHeld(false) })
	began := f.clock.Now()
	f.within(time.Minute).gets("a", engine.NotOlderThan(rev), "a=1@2", "nothing")
	require.Equal(t, 2*time.Second, f.clock.Now().Sub(began))
	require.EqualValues(t, 1, f.Stats().Waits)
}

// Before the first list a Get is the backend's.
func TestGet_BeforeTheFirstListAsksTheBackend(t *testing.T) {
	f := newDownFixture(t)
	_, err := f.storage.Put(t.Context(), draftOf(cfg(), pod{Name: "a", N: 1}), nil, backend.PutOptions{})
	require.NoError(t, err)
	f.setHeld(true)
	f.setDown(false)
	f.asked()
	f.gets("a", engine.Cached(), "a=1@2", "get")
	f.gets("a", engine.NotOlderThan(2), "a=1@2", "revision, get")
	_, err = f.Get(t.Context(), "a", engine.GetOptions{Read: engine.NotOlderThan(3)})
	require.ErrorIs(t, err, engine.ErrFuture)
}

// Before the first list a page is the backend's, too, and may be of any revision. The cache is not
// waited for.
func TestList_PageBeforeTheFirstListAsksTheBackend(t *testing.T) {
	f := newDownFixture(t)
	_, err := f.storage.Put(t.Context(), draftOf(cfg(), pod{Name: "a", N: 1}), nil, backend.PutOptions{})
	require.NoError(t, err)
	f.setDown(false)
	f.asked()
	f.lists(engine.ListOptions{Limit: 1, Read: engine.NotOlderThan(0)}, "@2: a=1@2", "list")
	f.lists(engine.ListOptions{Limit: 1, Read: engine.NotOlderThan(2)}, "@2: a=1@2", "list")
}

// The cache serves what it has although storage cannot be reached. Kubernetes
// answers 429 then; an engine was asked for what may be old.
func TestRead_OutageLeavesTheCacheReadable(t *testing.T) {
	f := newReadFixture(t)
	first := f.put("a", "web", 1)
	rev := f.put("a", "web", 2)
	f.setDown(true)
	f.settle()
	f.asked()
	require.False(t, f.Stats().Ready)
	f.gets("a", engine.Cached(), "a=2@3", "nothing")
	f.gets("a", engine.NotOlderThan(rev), "a=2@3", "nothing")
	f.gets("a", engine.Exactly(first), "a=1@2", "nothing")
	f.gets("a", engine.Latest(), errDown.Error(), "get")
	f.lists(engine.ListOptions{Read: engine.Cached()}, "@3: a=2@3", "nothing")
	f.lists(engine.ListOptions{Read: engine.NotOlderThan(rev)}, "@3: a=2@3", "nothing")
	f.lists(engine.ListOptions{Read: engine.NotOlderThan(rev), Limit: 1}, "@3: a=2@3", "nothing")
	f.lists(engine.ListOptions{Read: engine.Exactly(first)}, "@2: a=1@2", "nothing")
	found, err := f.ByIndex(t.Context(), "app", "web")
	require.NoError(t, err)
	require.Len(t, found, 1)
}

func TestRead_AfterCloseFails(t *testing.T) {
	f := newReadFixture(t)
	rev := f.put("a", "web", 1)
	require.NoError(t, f.Close())
	for name, read := range map[string]engine.Read{
		"Latest": engine.Latest(), "Cached": engine.Cached(), "NotOlderThan": engine.NotOlderThan(rev), "Exactly": engine.Exactly(rev),
	} {
		_, err := f.Get(t.Context(), "a", engine.GetOptions{Read: read})
		require.ErrorIs(t, err, engine.ErrEngineClosed, name)
		_, err = f.List(t.Context(), engine.ListOptions{Read: read, Limit: 1})
		require.ErrorIs(t, err, engine.ErrEngineClosed, name)
	}
	_, err := f.ByIndex(t.Context(), "app", "web")
	require.ErrorIs(t, err, engine.ErrEngineClosed)
	require.ErrorIs(t, f.WaitForRevision(t.Context(), rev), engine.ErrEngineClosed)
	require.ErrorIs(t, f.Verify(t.Context()), engine.ErrEngineClosed)
}

func TestGet_RefusesMalformedKeys(t *testing.T) {
	f := newReadFixture(t)
	for _, key := range []string{"", "/", "a//b", "/a", "a/", ".", "a/../b", "a\x00"} {
		for _, read := range []engine.Read{engine.Latest(), engine.Cached(), engine.Exactly(1)} {
			_, err := f.Get(t.Context(), key, engine.GetOptions{Read: read})
			require.ErrorIs(t, err, engine.ErrInvalidKey, "%q", key)
		}
	}
	require.Equal(t, "nothing", f.asked())
}

// Reads are served between any two turns of the engine, whatever it is in the
// middle of, and each sees a whole state that is not older than the one before.
func TestRead_NeverWaitsForTheWriter(t *testing.T) {
	f := newReadFixture(t)
	f.put("a", "web", 0)
	last, turns := 0, 0
	for n := 1; n <= 50; n++ {
		for _, name := range []string{"a", "b"} {
			_, err := f.Put(t.Context(), pod{Name: name, App: "web", N: n})
			require.NoError(t, err)
		}
		for ; f.executor.RunN(1) > 0; turns++ {
			o, err := f.Get(t.Context(), "a", engine.GetOptions{Read: engine.Cached()})
			require.NoError(t, err)
			require.GreaterOrEqual(t, o.Value.N, last, "a read went back in time")
			last = o.Value.N
			l, err := f.List(t.Context(), engine.ListOptions{Read: engine.Cached()})
			require.NoError(t, err)
			require.LessOrEqual(t, l.Items[0].Revision, l.Revision)
		}
	}
	require.Equal(t, 50, last)
	require.Greater(t, turns, 100)
}

// A writer that is stuck in a function of the user's delays no reader.
func TestRead_NeverWaitsForAWriterStuckInTheSchema(t *testing.T) {
	stuck, release := make(chan struct{}), make(chan struct{})
	c := cfg()
	c.Labels = func(p pod) labels.Set {
		if p.Name == "stuck" {
			close(stuck)
			<-release
		}
		return labels.Set{"app": p.App}
	}
	e, err := engine.New(c)
	require.NoError(t, err)
	rev, err := revisionOf(e.Create(t.Context(), pod{Name: "a", App: "web"}))
	require.NoError(t, err)
	require.NoError(t, e.WaitForRevision(t.Context(), rev))
	written := make(chan error)
	go func() {
		_, err := e.Create(context.Background(), pod{Name: "stuck"})
		written <- err
	}()
	<-stuck
	for _, read := range []engine.Read{engine.Latest(), engine.Cached(), engine.NotOlderThan(rev), engine.Exactly(rev)} {
		_, err := e.Get(t.Context(), "a", engine.GetOptions{Read: read})
		require.NoError(t, err)
		l, err := e.List(t.Context(), engine.ListOptions{Read: read})
		require.NoError(t, err)
		require.Len(t, l.Items, 1)
	}
	close(release)
	require.NoError(t, <-written)
	require.NoError(t, e.Close())
}

// While others write, reads of one goroutine never go back, an item is never
// newer than its list, and an exact list has exactly that revision.
func TestList_ParallelOnesAreSnapshots(t *testing.T) {
	e, err := engine.New(cfg())
	require.NoError(t, err)
	ctx := t.Context()
	done := make(chan error, 5)
	for writer := range 2 {
		go func() {
			var err error
			for n := 0; n < 300 && err == nil; n++ {
				_, err = e.Put(ctx, pod{Name: string(rune('a' + (n+writer)%7)), N: n*2 + writer})
				runtime.Gosched()
			}
			done <- err
		}()
	}
	require.NoError(t, e.WaitForRevision(ctx, 1))
	for range 3 {
		go func() { done <- readMonotonically(ctx, e) }()
	}
	for range 5 {
		require.NoError(t, <-done)
	}
	require.NoError(t, e.Close())
}

var errWentBack = errors.New("a read went back in time, or is of several states")

func readMonotonically(ctx context.Context, e *engine.Engine[pod]) error {
	last := engine.Revision(0)
	for n := range 200 {
		read := engine.Cached()
		if n%3 == 1 {
			read = engine.Latest()
		} else if n%3 == 2 {
			read = engine.Exactly(last)
		}
		l, err := e.List(ctx, engine.ListOptions{Read: read})
		if err != nil {
			return err
		}
		if l.Revision < last || read == engine.Exactly(last) && l.Revision != last {
			return errWentBack
		}
		last = l.Revision
		for _, o := range l.Items {
			if o.Revision > l.Revision {
				return errWentBack
			}
		}
	}
	return nil
}
