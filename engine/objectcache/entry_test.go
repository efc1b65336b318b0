package objectcache

import (
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
)

// The cache closes while the supervisor, which has found that the entry needs a Reflector, is about
// to start one.
func TestEntry_StaysClosedWhateverArrives(t *testing.T) {
	e := newEntry("a")
	e.acquire()
	needed, _ := e.review(0, NeverIdle)
	require.True(t, needed)
	e.close()
	late := &sink{entry: e}
	e.follow(late)
	object := store.Header(&engine.Object[string]{Key: "a", Revision: 1})
	goOn, _ := e.take(late, object, false, 0)
	require.False(t, goOn, "the Reflector is told to end")
	require.Equal(t, closed, e.view.Load().phase)
	require.ErrorIs(t, e.view.Load().err, ErrClosed)
}

// After a pause a new Reflector follows the object. Whatever the old one still sends is ignored.
func TestEntry_IgnoresAnEarlierReflector(t *testing.T) {
	e := newEntry("a")
	at := func(rev store.Revision) *store.Object {
		return store.Header(&engine.Object[string]{Key: "a", Revision: rev})
	}
	e.acquire()
	before, present := &sink{entry: e}, &sink{entry: e}
	e.follow(before)
	e.take(before, at(10), false, 0)
	e.advance(before, 10)
	e.review(time.Hour, time.Minute)
	require.Equal(t, stopped, e.view.Load().phase)
	late := func() {
		goOn, _ := e.take(before, at(20), false, 0)
		require.False(t, goOn)
		e.advance(before, 20)
		e.sourceFailed(before, store.ErrExpired)
		e.unreachable(before, store.ErrUnsupported)
	}
	require.True(t, e.want())
	late()
	e.follow(present)
	late()
	require.Equal(t, syncing, e.view.Load().phase)
	require.NoError(t, e.view.Load().err)
	_, first := e.take(present, at(5), false, 0)
	require.True(t, first)
	late()
	view, reached, _ := e.progress()
	require.EqualValues(t, 5, view.object.Revision)
	require.Zero(t, reached, "until the present one says how far it is")
	e.advance(present, 7)
	_, reached, _ = e.progress()
	require.EqualValues(t, 7, reached)
}

// A key without references costs no memory.
func TestRelease_LeavesNothingOfTheEntry(t *testing.T) {
	host, err := engine.NewHost(engine.HostConfig{Clock: engine.NewVirtualClock(time.Unix(0, 0)), Executor: engine.NewSeededExecutor(1), Seed: 1})
	require.NoError(t, err)
	values, err := engine.New(engine.Config[string]{Key: func(s string) string { return s }, Host: host})
	require.NoError(t, err)
	c, err := newCore(Config[string]{Source: values.Source(), Host: host}.settings())
	require.NoError(t, err)
	ref, err := c.acquire("a")
	require.NoError(t, err)
	_, err = ref.get(t.Context())
	require.ErrorIs(t, err, ErrNotFound)
	of := weak.Make(ref.(*reference).entry)
	ref.release()
	ref = nil
	require.ErrorIs(t, host.Await(t.Context(), nil), engine.ErrIdle)
	runtime.GC()
	require.Nil(t, of.Value())
	require.NoError(t, c.close())
	require.NoError(t, values.Close())
	require.NoError(t, host.Close())
}
