package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/faulty"
)

// followed is a watch of an engine's source that counts how often it is
// notified.
type followed struct {
	backend.Watcher
	notified int
	then     func() // what else happens when it is notified; nil is nothing
}

func (f *fixture) follow(prefix string) *followed {
	f.t.Helper()
	watch := &followed{}
	w, err := f.engine.Source().Watch(f.t.Context(), backend.WatchOptions{Prefix: prefix, Notify: func() {
		watch.notified++
		if watch.then != nil {
			watch.then()
		}
	}})
	require.NoError(f.t, err)
	watch.Watcher = w
	f.t.Cleanup(w.Close)
	f.executor.Run()
	require.Empty(f.t, next(f.t, watch)) // from here on it wants to be notified
	return watch
}

// notifiedOf returns how many of them were notified since the last time.
func notifiedOf(all []*followed) (n int) {
	for _, f := range all {
		n += f.notified
		f.notified = 0
	}
	return n
}

func followKeys(f *fixture, n int) []*followed {
	all := make([]*followed, n)
	for i := range all {
		all[i] = f.follow(fmt.Sprintf("ns/%d", i))
	}
	return all
}

func TestSource_WriteNotifiesWatchesOfItsKey(t *testing.T) {
	f := newFixture(t, nil)
	f.put("ns/0")
	all := followKeys(f, 1000)
	f.put("ns/500")
	require.Equal(t, 1, notifiedOf(all))
	require.Equal(t, []string{"ADDED ns/500@3"}, next(t, all[500]))
	f.put("elsewhere")
	require.Zero(t, notifiedOf(all))
}

func TestSource_WriteNotifiesWatchesOfAPrefixOfItsKey(t *testing.T) {
	f := newFixture(t, nil)
	for prefix, wakes := range map[string]bool{
		"": true, "a": true, "a/": true, "a/b": true, "a/b/": true, "a/b/c": true, "a/b/c/": false, "a/bc": false, "b": false,
	} {
		w := f.follow(prefix)
		rev := f.put("a/b/c")
		require.Equal(t, wakes, w.notified == 1, "prefix %q", prefix)
		require.Equal(t, wakes, len(next(t, w)) == 1, "prefix %q of what came at %d", prefix, rev)
		w.Close()
	}
}

// That nothing happened to what they follow they learn a little later, a share
// of them at a time.
func TestSource_ProgressComesToAllInTheEnd(t *testing.T) {
	f := newFixture(t, nil)
	f.put("ns/0")
	all := followKeys(f, 2500)
	rev := f.put("elsewhere")
	for _, share := range []int{1000, 1000, 500, 0} {
		require.Zero(t, notifiedOf(all))
		f.pass(100 * time.Millisecond)
		require.Equal(t, share, notifiedOf(all))
	}
	for _, w := range all {
		batch, err := w.Next(1)
		require.NoError(t, err)
		require.Empty(t, batch.Events)
		require.Equal(t, rev, batch.Through)
	}
}

// A watch that looks by itself is not notified of what it knows.
func TestSource_ProgressIsToldToThoseThatDoNotKnow(t *testing.T) {
	f := newFixture(t, nil)
	all := followKeys(f, 3)
	f.put("elsewhere")
	next(t, all[1])
	f.pass(100 * time.Millisecond)
	require.Equal(t, []int{1, 0, 1}, []int{all[0].notified, all[1].notified, all[2].notified})
}

func TestSource_WatchIsNotExpiredByWhatIsNotForIt(t *testing.T) {
	f := newFixture(t, func(_ *engine.HostConfig, cfg *engine.Config[thing]) {
		cfg.Window = engine.Window{MaxEvents: 8, ChunkSize: 2}
	})
	w := f.follow("a")
	for range 100 {
		f.put("b")
	}
	f.put("a")
	f.put("b")
	require.Equal(t, 1, w.notified)
	require.Len(t, next(t, w), 1)
	for range 100 {
		f.put("b")
	}
	require.Empty(t, next(t, w))
	for range 1100 {
		f.put("a")
	}
	require.ErrorIs(t, drain(w), engine.ErrExpired, "more that concerned it has left the window than it keeps")
}

// A watch is not expired by events of others between two of its own, of which it has read one.
func TestSource_WatchIsNotExpiredByWhatComesBetween(t *testing.T) {
	f := newFixture(t, func(_ *engine.HostConfig, cfg *engine.Config[thing]) {
		cfg.Window = engine.Window{MaxEvents: 8, ChunkSize: 2}
	})
	w := f.follow("a")
	put := func(keys ...string) {
		for _, key := range keys {
			f.put(key)
		}
	}
	put("a", "b", "b", "b", "b", "b", "a")
	batch, err := w.Next(1)
	require.NoError(t, err)
	require.Len(t, batch.Events, 1)
	put("b", "b", "b", "b")
	require.Equal(t, []string{"MODIFIED a@8"}, next(t, w))
}

// A watch is not expired by an outage.
func TestSource_WatchIsNotExpiredByAnOutage(t *testing.T) {
	for name, broken := range map[string]error{"resumed": errOutage, "listed anew": &store.ExpiredError{Requested: 1, Oldest: 2}} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(_ *engine.HostConfig, cfg *engine.Config[thing]) {
				cfg.Window = engine.Window{MaxEvents: 8, ChunkSize: 2}
			})
			w := f.follow("a")
			f.fault(1, faulty.Fail(errOutage), faulty.OpWatch)
			f.fault(1, faulty.Fail(errOutage), faulty.OpList)
			f.storage.BreakWatches(broken)
			f.write("b") // is what it comes back with
			f.pass(5 * time.Second)
			for range 100 {
				f.put("b")
			}
			require.Greater(t, f.engine.Stats().Generation, uint64(1), "there was an outage")
			require.Empty(t, next(t, w))
			f.put("a")
			require.Len(t, next(t, w), 1)
		})
	}
}

// The index has not seen what was before the watch.
func TestSource_WatchFromThePastSeesWhatWasBeforeIt(t *testing.T) {
	f := newFixture(t, nil)
	f.put("a")
	f.put("b")
	w, err := f.engine.Source().Watch(t.Context(), backend.WatchOptions{Prefix: "a", From: 1, Notify: func() {}})
	require.NoError(t, err)
	defer w.Close()
	f.executor.Run()
	require.Equal(t, []string{"ADDED a@2"}, next(t, w))
}
