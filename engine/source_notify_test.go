package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/watchmill/watchmill/clock"
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

// Neither by what came between two things that do, of which it has read one.
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

// Nor by an outage.
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

// Whatever is written and however they read: each sees all that is for it, in
// order, is notified when there is something, and expires only by what is for
// it.
func TestSource_WatchesSeeAllThatIsForThem(t *testing.T) {
	const window, chunk = 8, 2
	keys := []string{"a", "a/b", "a/b/c", "ab", "b/c"}
	prefixes := []string{"", "a", "a/", "a/b", "b/c", "nothing"}
	rapid.Check(t, func(rt *rapid.T) {
		f := newFixture(t, func(_ *engine.HostConfig, cfg *engine.Config[thing]) {
			cfg.Window = engine.Window{MaxEvents: window, ChunkSize: chunk}
		})
		defer f.engine.Close()
		var written []string // keys, in order
		type reader struct {
			*followed
			prefix string
			at     int // at is what of written it has seen go by
			idle   bool
		}
		var readers []*reader
		ahead := func(w *reader) int {
			return slices.IndexFunc(written[w.at:], func(key string) bool { return store.HasPrefix(key, w.prefix) })
		}
		write := func(label string) {
			for _, key := range rapid.SliceOfN(rapid.SampledFrom(keys), 1, 3).Draw(rt, label) {
				f.write(key)
				written = append(written, key)
			}
		}
		requireTold := func() {
			for _, w := range readers {
				require.False(rt, w.idle && ahead(w) >= 0 && w.notified == 0, "%q was not notified of %q", w.prefix, written[w.at:])
			}
		}
		steps := rapid.IntRange(1, 60).Draw(rt, "steps")
		for range steps {
			switch rapid.IntRange(0, 6).Draw(rt, "step") {
			case 0:
				prefix := rapid.SampledFrom(prefixes).Draw(rt, "prefix")
				readers = append(readers, &reader{followed: f.follow(prefix), prefix: prefix, at: len(written), idle: true})
			case 1, 2, 3:
				write("at once")
				f.executor.Run()
				requireTold()
			case 4:
				f.pass(100 * time.Millisecond)
			case 5:
				f.storage.BreakWatches(errOutage)
				f.executor.Run()
				write("during an outage")
				f.pass(3 * time.Second)
				requireTold()
			case 6:
				if len(readers) == 0 {
					continue
				}
				i := rapid.IntRange(0, len(readers)-1).Draw(rt, "reader")
				w := readers[i]
				w.notified = 0
				batch, err := w.Next(rapid.IntRange(1, 3).Draw(rt, "max"))
				n := ahead(w)
				if err != nil {
					require.True(rt, errors.Is(err, engine.ErrExpired) && n >= 0 && len(written)-(w.at+n) > window-chunk, "%q: %v", w.prefix, err)
					readers = slices.Delete(readers, i, i+1)
					continue
				}
				for _, ev := range batch.Events {
					n = ahead(w)
					require.GreaterOrEqual(rt, n, 0, "%q sees %v", w.prefix, ev)
					require.Equal(rt, written[w.at+n], ev.Key())
					require.EqualValues(rt, w.at+n+2, ev.Revision, "the first revision is storage's own")
					w.at += n + 1
				}
				w.idle = len(batch.Events) == 0
				require.False(rt, w.idle && ahead(w) >= 0, "%q has missed something", w.prefix)
			}
		}
		for _, w := range readers {
			w.Close()
		}
	})
}

// Watches are notified, closed and read while writers write, on many
// goroutines: none misses anything. Time stands still, so that no progress
// makes up for a notification that is lost.
func TestSource_WatchesWhileOthersComeAndGo(t *testing.T) {
	const keys, writes = 4, 200
	host, err := engine.NewHost(engine.HostConfig{Clock: clock.NewVirtual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, host.Close()) })
	e, ctx := newEngine(t, func(c *engine.Config[pod]) { c.Host = host })
	require.NoError(t, e.WaitFor(ctx, 0))
	source := e.Source()
	var busy, churning sync.WaitGroup
	for i := range keys {
		key, more := fmt.Sprintf("k/%d", i), make(chan struct{}, 1)
		w, err := source.Watch(ctx, backend.WatchOptions{Prefix: key, Notify: func() {
			select {
			case more <- struct{}{}:
			default: // it has been notified already
			}
		}})
		require.NoError(t, err)
		busy.Go(func() {
			defer w.Close()
			for seen := 0; seen < writes; {
				batch, err := w.Next(7)
				if !assert.NoError(t, err) {
					return
				}
				for _, ev := range batch.Events {
					assert.Equal(t, pod{Name: key, N: seen + 1}, store.As[engine.Object[pod]](ev.Object).Value)
					seen++
				}
				if len(batch.Events) > 0 {
					continue
				}
				select {
				case <-more:
				case <-ctx.Done():
					assert.Fail(t, "it was not notified", "%s after %d", key, seen)
					return
				}
			}
		})
		busy.Go(func() {
			for n := range writes {
				_, err := e.Put(ctx, pod{Name: key, N: n + 1})
				assert.NoError(t, err)
			}
		})
	}
	over := make(chan struct{})
	churning.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
			}
			w, err := source.Watch(ctx, backend.WatchOptions{Prefix: "k/0", Notify: func() {}})
			if !assert.NoError(t, err) {
				return
			}
			_, err = w.Next(1)
			assert.NoError(t, err)
			w.Close()
		}
	})
	busy.Wait()
	close(over)
	churning.Wait()
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
