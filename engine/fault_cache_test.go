package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/clock/clocktest"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store/backend/faulty"
)

// cacheFixture is a fixture of which a part can be made to fail, whose source
// hands out one event at a time, and whose calls let up to a minute pass while
// they wait.
type cacheFixture struct {
	*fixture
	trap     *clocktest.Failing
	executor *advancing
}

func newCacheFixture(t *testing.T, seed uint64) *cacheFixture {
	f := &cacheFixture{}
	f.fixture = newFixture(t, func(host *engine.HostConfig, _ *engine.Config[thing]) {
		f.executor = &advancing{Seeded: actors.NewSeeded(seed), clock: host.Clock.(*clock.Virtual)}
		f.trap = &clocktest.Failing{Clock: host.Clock, Counts: func(clocktest.Call, time.Duration) bool { return f.executor.running }}
		host.Clock, host.Executor = f.trap, f.executor
	})
	f.fixture.executor = f.executor.Seeded
	f.fixture.executor.Run()
	f.fault(0, batchesOf(1), faulty.OpNext)
	f.executor.seconds = 60
	t.Cleanup(func() {
		f.executor.seconds = 0
		f.trap.Fail(clocktest.Now, 0, 0)
	})
	return f
}

// cacheFailed reports whether it is the watchCache that failed. It has then
// been brought back, and nothing else failed.
func (f *cacheFixture) cacheFailed() bool {
	f.t.Helper()
	if len(f.failures) == 0 || f.failures[0].Actor != "things/watchCache" {
		return false
	}
	require.Len(f.t, f.failures, 1)
	require.EqualValues(f.t, 1, f.engine.Stats().Failures)
	return true
}

// maxReads is more often than the clock is read in the turns of these tests.
const maxReads = 30

// The watchCache fails while a call waits for a revision, at each message on
// the way there; changes before it may have been applied and not yet published.
// It restarts, lists, and brings the difference; the call returns; watches live
// on in a new generation and are given everything once. Only if the wait is the
// very message at which it fails, the caller is told to try again.
func TestFault_CacheFailsWhileACallWaits(t *testing.T) {
	synthetic, failed, refused := uint64(0), 0, 0
	for reads := 1; reads <= maxReads; reads++ {
		for seed := uint64(1); seed <= 10; seed++ {
			t.Run(fmt.Sprintf("read=%d/seed=%d", reads, seed), func(t *testing.T) {
				outcome := failWhileWaiting(t, reads, seed)
				synthetic += outcome.synthetic
				if outcome.failed {
					failed++
				}
				if outcome.refused {
					refused++
				}
			})
		}
	}
	require.Greater(t, failed, refused, "it also failed at other messages than the wait")
	require.Positive(t, refused, "it also failed at the wait itself")
	require.Positive(t, synthetic, "some failure lost changes that only the list brought back")
}

// failure is what came of a call during which an actor failed.
type failure struct {
	// failed: it was the watchCache. refused: the call was.
	failed, refused bool
	// synthetic is how many changes the list brought back.
	synthetic uint64
}

// failWhileWaiting has the clock fail when it has been read that many times, and
// judges what follows if it was the watchCache that read it.
func failWhileWaiting(t *testing.T, reads int, seed uint64) (outcome failure) {
	f := newCacheFixture(t, seed)
	f.put("a")
	f.put("gone")
	all, web := f.watch(engine.WatchOptions{}), f.watch(engine.WatchOptions{From: 1, Labels: "app=web", Policy: engine.Terminate})
	before := f.engine.Stats()
	require.EqualValues(t, 1, before.Generation)

	f.trap.Fail(clocktest.Now, reads-1, 1)
	for _, key := range []string{"b", "a", "c", "d"} { // unseen by the engine so far
		f.n++
		_, err := f.engine.Put(t.Context(), thing{Key: key, App: "web", N: f.n})
		require.NoError(t, err)
	}
	gone, err := f.engine.Delete(t.Context(), "gone", engine.DeleteOptions{})
	require.NoError(t, err)
	if err := f.engine.WaitForRevision(t.Context(), gone.Revision); err != nil {
		require.ErrorIs(t, err, engine.ErrNotReady)
		require.ErrorIs(t, err, engine.ErrCacheFailed)
		require.NoError(t, f.engine.WaitForRevision(t.Context(), gone.Revision))
		outcome.refused = true
	}
	if outcome.failed = f.cacheFailed(); !outcome.failed {
		require.False(t, outcome.refused, "it was not the cache that failed")
		return outcome
	}

	l, err := f.engine.List(t.Context(), listOf(engine.Cached()))
	require.NoError(t, err)
	require.Equal(t, gone.Revision, l.Revision)
	require.Equal(t, "a=4 b=3 c=5 d=6", values(l.Items))
	after := f.engine.Stats()
	require.True(t, after.Ready)
	require.Equal(t, before.Generation+1, after.Generation)
	require.Equal(t, [2]uint64{1, 1}, [2]uint64{after.Relists, after.Source.Relists[reflector.Distrusted]})

	f.put("e")
	require.Equal(t, f.told(web)[2:], f.told(all), "both are told the same, once")
	outcome.synthetic = after.Synthetic
	return outcome
}

// An engine ends whose parts fail time and again within a minute, and not one whose parts
// fail now and then.
func TestFault_ManyFailuresEndTheEngineIfTheyComeWithinAMinute(t *testing.T) {
	for name, test := range map[string]struct {
		pause time.Duration
		// back is how far the clock is set back after the first failure.
		back time.Duration
		ends bool
	}{
		"within a minute": {time.Second, 0, true}, "over many": {10 * time.Second, 0, false},
		"within a minute, of a clock that is set back": {time.Second, time.Hour, true},
		"over many, of a clock that is set back":       {10 * time.Second, 24 * time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newCacheFixture(t, 1)
			f.executor.running = true // whatever runs may fail
			for n := 1; n <= 40 && f.engine.Stats().Failures < 30; n++ {
				f.trap.Fail(clocktest.Now, 0, 1)
				_, err := f.engine.Put(t.Context(), thing{Key: "a", N: n})
				if errors.Is(err, engine.ErrEngineClosed) {
					break
				}
				require.NoError(t, err)
				f.pass(test.pause)
				if n == 1 {
					f.clock.Jump(-test.back)
				}
			}
			f.executor.running = false
			_, err := f.engine.Put(t.Context(), thing{Key: "a"})
			if test.ends {
				require.ErrorIs(t, err, engine.ErrEngineClosed)
				return
			}
			require.NoError(t, err)
			require.Greater(t, f.engine.Stats().Failures, uint64(20))
		})
	}
}

// The watchCache fails while Drain waits for it, at each message on the way there, one of
// which is Drain's own wait. Drain waits again, and everything is delivered.
func TestFault_CacheFailsWhileTheEngineIsDrained(t *testing.T) {
	failed := 0
	for reads := 1; reads <= maxReads; reads++ {
		for seed := uint64(1); seed <= 10; seed++ {
			f := newCacheFixture(t, seed)
			handled := map[string]int{}
			_, err := f.engine.Handle(t.Context(), engine.WatchOptions{}, func(ev engine.Event[thing]) { handled[ev.Key()]++ })
			require.NoError(t, err)
			f.trap.Fail(clocktest.Now, reads-1, 1)
			for _, key := range []string{"a", "b", "c"} { // unseen by the engine so far
				f.write(key)
			}
			err = f.engine.Drain(t.Context())
			if len(f.failures) == 0 || f.failures[0].Actor != "things/watchCache" {
				continue
			}
			failed++
			require.NoError(t, err, "read %d, seed %d", reads, seed)
			require.Equal(t, map[string]int{"a": 1, "b": 1, "c": 1}, handled)
		}
	}
	require.Positive(t, failed)
}

// told returns what the watch was told, as key=value, in order, and demands
// that it is what happened.
func (f *cacheFixture) told(w *engine.Watch[thing]) (changes []string) {
	f.t.Helper()
	last, state := engine.Revision(0), map[string]int{}
	for ev, err := range w.Events() {
		if errors.Is(err, engine.ErrIdle) {
			break
		}
		require.NoError(f.t, err)
		require.Greater(f.t, ev.Revision, last)
		last = ev.Revision
		changes = append(changes, fmt.Sprintf("%v %s=%d", ev.Type, ev.Key(), ev.Object.Value.N))
		if state[ev.Key()] = ev.Object.Value.N; ev.Type == engine.Deleted {
			delete(state, ev.Key())
		}
	}
	require.Equal(f.t, map[string]int{"a": 4, "b": 3, "c": 5, "d": 6, "e": 7}, state)
	return changes
}

// values prints objects as in "a=1 b=2".
func values(objects []*engine.Object[thing]) string {
	var all []string
	for _, o := range objects {
		all = append(all, fmt.Sprintf("%s=%d", o.Key, o.Value.N))
	}
	return strings.Join(all, " ")
}

// What a call waits for does not come: the cache that took over says so when
// its time is up, with the reason of that moment.
func TestFault_CacheFailsWhileACallWaitsInVain(t *testing.T) {
	for name, down := range map[string]bool{"the revision does not come": false, "storage is lost": true} {
		t.Run(name, func(t *testing.T) {
			judged := 0
			for reads := 1; reads <= maxReads; reads++ {
				if failWhileWaitingInVain(t, reads, down) {
					judged++
				}
			}
			require.Positive(t, judged, "the cache never failed once the call waited")
		})
	}
}

// failWhileWaitingInVain reports whether the watchCache failed once it had
// taken in the wait.
func failWhileWaitingInVain(t *testing.T, reads int, down bool) bool {
	f := newCacheFixture(t, 1)
	f.put("a")
	w := f.watch(engine.WatchOptions{})
	f.trap.Fail(clocktest.Now, reads-1, 1)
	_, err := f.engine.Put(t.Context(), thing{Key: "b"})
	require.NoError(t, err)
	if down {
		f.fault(0, faulty.Fail(errOutage), faulty.OpList)
	}
	began := f.clock.Now()
	err = f.engine.WaitForRevision(t.Context(), 1000)
	if !f.cacheFailed() || errors.Is(err, engine.ErrCacheFailed) {
		return false
	}
	require.Equal(t, engine.DefaultFreshnessTimeout, f.clock.Now().Sub(began), "in time")
	if down {
		var notReady *engine.NotReadyError
		require.ErrorAs(t, err, &notReady)
		require.ErrorIs(t, err, errOutage)
	} else {
		require.Equal(t, &engine.FutureError{Requested: 1000, Current: 3}, err)
	}
	f.heal()
	f.pass(10 * time.Second)
	require.NoError(t, w.Err())
	require.EqualValues(t, 2, f.engine.Stats().Generation)
	seen, end := f.read(w)
	require.NoError(t, end)
	require.Len(t, seen, 1)
	require.True(t, strings.HasPrefix(seen[0], "ADDED b@3"), seen)
	return true
}
