package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/faulty"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// Storage that was replaced is another history from when the cache has noticed. Until then, the
// watches of the source are of that which the cache has.
func TestSource_IsOfTheStorageThatTheCacheHas(t *testing.T) {
	f := newReadFixture(t)
	f.put("a", "web", 1)
	first, err := backend.StoreID(t.Context(), f.Source().ListerWatcher)
	require.NoError(t, err)
	old := f.storage.Replace(f.newMemory())
	w, err := f.Source().Watch(t.Context(), backend.WatchOptions{From: 1, Notify: func() {}})
	require.NoError(t, err)
	defer w.Close()
	watched, err := w.(backend.Identifier).StoreID(t.Context())
	require.NoError(t, err)
	require.Equal(t, first, watched)
	f.settle()
	require.Equal(t, []string{"ADDED a@2"}, next(t, w))
	require.NoError(t, old.Close())
	f.notice()
	now, err := backend.StoreID(t.Context(), f.Source().ListerWatcher)
	require.NoError(t, err)
	require.NotEqual(t, first, now)
	_, err = w.Next(1)
	require.ErrorIs(t, err, engine.ErrExpired)
}

// ahead returns storage that is ahead of what the cache of f has.
func (f *readFixture) ahead() backend.Backend {
	other := f.newMemory()
	for n := range 9 {
		_, err := other.Put(f.t.Context(), draftOf(podsByNumber(), pod{Name: string(rune('a' + n))}), nil, backend.PutOptions{})
		require.NoError(f.t, err)
	}
	return other
}

// A cache that is behind storage has storage list, unless that is another one than the cache's,
// whose list no watch of the cache continues.
func TestSource_DoesNotListStorageThatTheCacheHasNotNoticed(t *testing.T) {
	f := newReadFixture(t)
	old := f.storage.Replace(f.ahead())
	_, err := f.Source().List(t.Context(), backend.ListOptions{})
	require.ErrorIs(t, err, engine.ErrNotReady)
	require.ErrorContains(t, err, "storage was replaced")
	require.NoError(t, old.Close())
	f.notice()
	page, err := f.Source().List(t.Context(), backend.ListOptions{})
	require.NoError(t, err)
	require.Len(t, page.Items, 9)
}

// A list of storage that is replaced is not returned, even if the cache notices only while storage
// lists.
func TestSource_DoesNotListStorageThatIsReplacedMeanwhile(t *testing.T) {
	f := newReadFixture(t)
	f.setHeld(true)
	f.put("a", "web", 1)
	f.storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpList}, Times: 1, Do: faulty.After(func(context.Context, *faulty.Call) {
		f.setHeld(false)
		f.replaceStorage(3, 0)
	})})
	_, err := f.Source().List(t.Context(), backend.ListOptions{})
	require.ErrorIs(t, err, engine.ErrNotReady)
}

// Storage may have gone back in time while the cache cannot watch it. Then its revision is no
// greater than the cache's, whose state is of no use all the same.
func TestSource_DoesNotListTheCacheWhileItIsNotReady(t *testing.T) {
	f := newReadFixture(t, func(c *engine.Config[pod]) { c.Backend = sameStorage{c.Backend.(*faulty.Backend)} })
	f.put("a", "web", 1)
	f.storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpWatch}, Do: faulty.Fail(errDown)})
	f.goBack()
	f.storage.BreakWatches(errDown)
	f.settle()
	require.False(t, f.Stats().Ready)
	page, err := f.Source().List(t.Context(), backend.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, page.Items)
	require.Equal(t, engine.Revision(1), page.Revision)
}

// A client that has what the cache has can wait for more, though storage does not answer.
func TestSource_WatchFromTheCachesRevisionAsksNothing(t *testing.T) {
	f := newReadFixture(t)
	rev := f.put("a", "web", 1)
	f.setDown(true)
	f.settle()
	f.asked()
	w, err := f.Source().Watch(t.Context(), backend.WatchOptions{From: rev, Notify: func() {}})
	require.NoError(t, err)
	defer w.Close()
	require.Equal(t, "nothing", f.asked())
	f.setDown(false)
	f.pass(time.Minute)
	require.Empty(t, next(t, w))
	f.put("b", "web", 1)
	require.Equal(t, []string{"ADDED b@3"}, next(t, w))
}

// A list waits for storage where that is I/O, and for the cache where that runs by itself.
func TestSource_BlocksIfTheCacheOrStorageDoes(t *testing.T) {
	for _, blocks := range []bool{false, true} {
		beneath, err := memory.New(cfg().Schema(), memory.Options{})
		require.NoError(t, err)
		storage := faulty.New(beneath, faulty.Options{Blocks: blocks})
		for _, deterministic := range []bool{false, true} {
			e, _ := newEngine(t, func(c *engine.Config[pod]) {
				c.Backend, c.FirstRevision = storage, 0
				if deterministic {
					c.Host = newHost(t, engine.HostConfig{Clock: engine.NewVirtualClock(epoch), Executor: engine.NewSeededExecutor(1)})
				}
			})
			require.Equal(t, blocks || !deterministic, e.Source().Traits().Blocks, "blocks: %v, deterministic: %v", blocks, deterministic)
			require.NoError(t, e.Close())
		}
		require.NoError(t, storage.Close())
	}
}
