package engine_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store/backend/faulty"
	"github.com/watchmill/watchmill/usercode"
)

// uncached returns an engine whose cache is off.
func uncached(t *testing.T) *engine.Engine[pod] {
	t.Helper()
	c := cfg()
	c.NoCache = true
	e, err := engine.New(c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

func TestNoCache_WatchIsServedByTheBackend(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	e := uncached(t)
	_, err := e.Create(ctx, pod{Name: "a", App: "web"})
	require.NoError(t, err)

	w, err := e.Watch(ctx, engine.WatchOptions{Labels: "app=web", InitialState: true, Bookmarks: true})
	require.NoError(t, err)
	_, err = e.Create(ctx, pod{Name: "b", App: "db"})
	require.NoError(t, err)
	_, err = e.Create(ctx, pod{Name: "c", App: "web"})
	require.NoError(t, err)
	_, err = e.Put(ctx, pod{Name: "c", App: "db"})
	require.NoError(t, err)

	var seen []string
	for ev, err := range w.Events() {
		require.NoError(t, err)
		seen = append(seen, ev.String())
		if ev.Type == engine.Deleted {
			break
		}
	}
	require.Equal(t, []string{"ADDED a@2 initial", "BOOKMARK@2 initial-end", "ADDED c@4", "DELETED c@5"}, seen)
	w.Stop()
	_, err = w.Next(ctx)
	require.ErrorIs(t, err, engine.ErrStopped)
}

func TestNoCache_WindowBoundsTheHistoryOfTheEnginesOwnStorage(t *testing.T) {
	e, ctx := newEngine(t, func(c *engine.Config[pod]) { c.NoCache, c.Window = true, engine.Window{MaxEvents: 8} })
	var last engine.Revision
	for n := range 100 {
		o, err := e.Put(ctx, pod{Name: "a", N: n})
		require.NoError(t, err)
		last = o.Revision
	}
	_, err := e.Watch(ctx, engine.WatchOptions{From: last - 20})
	require.ErrorIs(t, err, engine.ErrExpired)
	w, err := e.Watch(ctx, engine.WatchOptions{From: last - 4})
	require.NoError(t, err)
	require.Len(t, until(t, ctx, w, last), 4)
}

// However large a buffer is, the window has room for what is read for it at once.
func TestNoCache_TheLargestBuffersHaveRoomForABatch(t *testing.T) {
	for _, buffer := range []int{math.MaxInt - 254, math.MaxInt, math.MaxInt32, math.MaxInt / 2} {
		f := newFixture(t, func(_ *engine.HostConfig, c *engine.Config[thing]) { c.NoCache = true })
		w := f.watch(engine.WatchOptions{Buffer: buffer})
		for range 10 {
			f.write("a")
		}
		seen, end := f.read(w)
		require.NoError(t, end, "buffer %d", buffer)
		require.Len(t, seen, 10)
	}
}

func TestNoCache_SlowConsumerLosesNothing(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	e := uncached(t)
	w, err := e.Watch(ctx, engine.WatchOptions{Buffer: 10})
	require.NoError(t, err)
	var last engine.Revision
	for i := range 2000 {
		last, err = revisionOf(e.Put(ctx, pod{Name: "a", N: i}))
		require.NoError(t, err)
	}
	next := 0
	for ev, err := range w.Events() {
		require.NoError(t, err)
		require.Equal(t, next, ev.Object.Value.N)
		next++
		if ev.Revision == last {
			break
		}
	}
	require.Equal(t, 2000, next)
}

func TestNoCache_CloseEndsTheWatch(t *testing.T) {
	c := cfg()
	c.NoCache = true
	e, err := engine.New(c)
	require.NoError(t, err)
	w, err := e.Watch(t.Context(), engine.WatchOptions{})
	require.NoError(t, err)
	require.NoError(t, e.Close())
	<-w.Done()
	require.ErrorIs(t, w.Err(), engine.ErrEngineClosed)
}

// Without a cache the same input is refused.
// Storage may have much more than what a watch is for.
func TestNoCache_WatchAsksStorageForWhatItCovers(t *testing.T) {
	for want, opts := range map[string]engine.WatchOptions{"": {Labels: "app=web"}, "a": {Key: "a"}, "ns": {Prefix: "ns"}} {
		f := newReadFixture(t, func(c *engine.Config[pod]) { c.NoCache = true })
		var asked []string
		f.storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpList, faulty.OpWatch}, Do: faulty.Before(func(_ context.Context, c *faulty.Call) {
			asked = append(asked, c.Key)
		})})
		opts.InitialState = true
		_, err := f.Watch(t.Context(), opts)
		require.NoError(t, err)
		require.Equal(t, []string{want, want}, asked)
	}
}

func TestNoCache_InputIsCheckedAlike(t *testing.T) {
	e := uncached(t)
	ctx := context.Background()
	_, err := e.Watch(ctx, engine.WatchOptions{Labels: "app~web"})
	require.ErrorIs(t, err, engine.ErrInvalidSelector)
	_, err = e.Watch(ctx, engine.WatchOptions{Last: 3})
	wanted{engine.ErrUnsupported, []string{"Last", "cache"}}.require(t, err)
	_, err = e.Watch(ctx, engine.WatchOptions{Policy: engine.Conflate})
	wanted{engine.ErrUnsupported, []string{"Conflate", "cache"}}.require(t, err)
	_, err = e.Watch(ctx, engine.WatchOptions{From: 1000, InitialState: true})
	require.ErrorIs(t, err, engine.ErrFuture)
	_, err = e.List(ctx, engine.ListOptions{Read: engine.NotOlderThan(1000)})
	require.ErrorIs(t, err, engine.ErrFuture)
	_, err = e.List(ctx, engine.ListOptions{Read: engine.Exactly(1000)})
	require.ErrorIs(t, err, engine.ErrFuture)
	_, err = e.ByIndex(ctx, "zone", "z1")
	require.ErrorIs(t, err, engine.ErrUnknownIndex)
	_, err = e.Handle(ctx, engine.WatchOptions{}, nil)
	require.ErrorIs(t, err, engine.ErrNilHandler)
}

// Without a cache every read is the backend's.
func TestNoCache_ReadsAreServedByTheBackend(t *testing.T) {
	f := newReadFixture(t, func(c *engine.Config[pod]) { c.NoCache = true })
	first := f.put("a", "web", 1)
	f.put("b", "db", 2)
	f.gets("a", engine.Latest(), "a=1@2", "get")
	f.gets("a", engine.Cached(), "a=1@2", "get")
	f.gets("a", engine.NotOlderThan(first), "a=1@2", "revision, get")
	f.gets("b", engine.Exactly(first), "not found", "list")
	_, err := f.Get(t.Context(), "a", engine.GetOptions{Read: engine.NotOlderThan(9)})
	require.ErrorIs(t, err, engine.ErrFuture)
	f.asked()
	f.lists(engine.ListOptions{}, "@3: a=1@2 b=2@3", "list")
	f.lists(engine.ListOptions{Read: engine.Cached()}, "@3: a=1@2 b=2@3", "list")
	f.lists(engine.ListOptions{Labels: "app=db"}, "@3: b=2@3", "list")
	f.lists(engine.ListOptions{Read: engine.Exactly(first)}, "@2: a=1@2", "list")
	token := f.lists(engine.ListOptions{Limit: 1}, "@3: a=1@2 +1 more", "list")
	f.lists(engine.ListOptions{Continue: token}, "@3: b=2@3", "list")
	_, err = f.List(t.Context(), engine.ListOptions{Read: engine.NotOlderThan(9)})
	require.Equal(t, &engine.FutureError{Requested: 9, Current: 3}, err)
	found, err := f.ByIndex(t.Context(), "app", "db")
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.NoError(t, f.WaitForRevision(t.Context(), 99), "there is nothing to wait for")
	require.NoError(t, f.Verify(t.Context()))
	require.Zero(t, f.Stats().Lists)
}

// The caller gives up while the engine's actors start the watch.
func TestNoCache_ContextEndsWhileTheWatchStarts(t *testing.T) {
	e, _ := newEngine(t, func(c *engine.Config[pod]) { c.NoCache = true })
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for range 200 {
				ctx, cancel := context.WithCancel(context.Background())
				callers.Go(cancel)
				if w, err := e.Watch(ctx, engine.WatchOptions{}); err == nil {
					<-w.Done()
				} else if !errors.Is(err, context.Canceled) && !errors.Is(err, engine.ErrStopped) {
					t.Error(err)
				}
			}
		})
	}
	callers.Wait()
}

// Storage that panics ends the watch with that, and not with the end of the engine.
func TestNoCache_PanicOfTheBackendEndsTheWatchThatItConcerns(t *testing.T) {
	f := newFixture(t, func(_ *engine.HostConfig, c *engine.Config[thing]) { c.NoCache = true })
	w := f.watch(engine.WatchOptions{})
	f.fault(1, faulty.Before(func(context.Context, *faulty.Call) { panic("no power") }), faulty.OpNext)
	rev := f.put("a")
	_, end := f.read(w)
	var panicked *usercode.PanicError
	require.ErrorAs(t, end, &panicked)
	require.EqualError(t, panicked, "Watcher.Next panicked: no power")
	require.NotErrorIs(t, end, engine.ErrEngineClosed)
	f.requireReads(f.watch(engine.WatchOptions{From: rev - 1}), "ADDED a@2")
}

// What a watch does not select does not push what it does out of its window.
func TestNoCache_InitialStateIsNotOverrunByWhatTheWatchDoesNotSelect(t *testing.T) {
	f := newFixture(t, func(_ *engine.HostConfig, c *engine.Config[thing]) { c.NoCache = true })
	f.put("a")
	f.put("c")
	w := f.watch(engine.WatchOptions{Labels: "app=web", InitialState: true, Buffer: 4})
	for n := range 2000 {
		_, err := f.engine.Put(t.Context(), thing{Key: "b", App: "db", N: n})
		require.NoError(t, err)
		if n%600 == 0 {
			f.put("c")
		}
	}
	f.executor.Run()
	f.requireReads(w, "ADDED a@2 initial", "ADDED c@3 initial",
		"MODIFIED c@5", "MODIFIED c@606", "MODIFIED c@1207", "MODIFIED c@1808")
}
