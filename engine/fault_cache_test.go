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
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store/backend/faulty"
)

// panickingClock is a clock that panics once, when actors have read it so many
// times in the turns of an executor.
type panickingClock struct {
	actors.Clock
	executor *advancing
	reads    int
}

func (c *panickingClock) Now() time.Time {
	if c.reads > 0 && c.executor.running {
		if c.reads--; c.reads == 0 {
			panic("what is time?")
		}
	}
	return c.Clock.Now()
}

// cacheFixture is a fixture of which a part can be made to fail, whose source
// hands out one event at a time, and whose calls let up to a minute pass while
// they wait.
type cacheFixture struct {
	*fixture
	trap     *panickingClock
	executor *advancing
}

func newCacheFixture(t *testing.T, seed uint64) *cacheFixture {
	r := &cacheFixture{}
	r.fixture = newFixture(t, func(host *engine.HostConfig, _ *engine.Config[thing]) {
		r.executor = &advancing{Seeded: actors.NewSeeded(seed), clock: host.Clock.(*actors.VirtualClock)}
		r.trap = &panickingClock{Clock: host.Clock, executor: r.executor}
		host.Clock, host.Executor = r.trap, r.executor
	})
	r.fixture.executor = r.executor.Seeded
	r.fixture.executor.Run()
	r.fault(0, batchesOf(1), faulty.OpNext)
	r.executor.seconds = 60
	t.Cleanup(func() { r.executor.seconds, r.trap.reads = 0, 0 })
	return r
}

// cacheFailed reports whether it is the watchCache that failed. It has then
// been brought back, and nothing else failed.
func (r *cacheFixture) cacheFailed() bool {
	r.t.Helper()
	if len(r.failures) == 0 || r.failures[0].Actor != "things/watchCache" {
		return false
	}
	require.Len(r.t, r.failures, 1)
	require.EqualValues(r.t, 1, r.engine.Stats().Failures)
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

// failWhileWaiting has the clock fail when it has been read so many times, and
// judges what follows if it was the watchCache that read it.
func failWhileWaiting(t *testing.T, reads int, seed uint64) (outcome failure) {
	r := newCacheFixture(t, seed)
	r.put("a")
	r.put("gone")
	all, web := r.watch(engine.WatchOptions{}), r.watch(engine.WatchOptions{From: 1, Labels: "app=web", Policy: engine.Terminate})
	before := r.engine.Stats()
	require.EqualValues(t, 1, before.Generation)

	r.trap.reads = reads
	for _, key := range []string{"b", "a", "c", "d"} { // unseen by the engine so far
		r.n++
		_, err := r.engine.Put(t.Context(), thing{Key: key, App: "web", N: r.n})
		require.NoError(t, err)
	}
	gone, err := r.engine.Delete(t.Context(), "gone", engine.DeleteOptions{})
	require.NoError(t, err)
	if err := r.engine.WaitFor(t.Context(), gone.Revision); err != nil {
		require.ErrorIs(t, err, engine.ErrNotReady)
		require.ErrorIs(t, err, engine.ErrCacheFailed)
		require.NoError(t, r.engine.WaitFor(t.Context(), gone.Revision))
		outcome.refused = true
	}
	if outcome.failed = r.cacheFailed(); !outcome.failed {
		require.False(t, outcome.refused, "it was not the cache that failed")
		return outcome
	}

	l, err := r.engine.List(t.Context(), listOf(engine.Cached()))
	require.NoError(t, err)
	require.Equal(t, gone.Revision, l.Revision)
	require.Equal(t, "a=4 b=3 c=5 d=6", values(l.Items))
	after := r.engine.Stats()
	require.True(t, after.Ready)
	require.Equal(t, before.Generation+1, after.Generation)
	require.Equal(t, [2]uint64{1, 1}, [2]uint64{after.Relists, after.Source.Relists[reflector.Distrusted]})

	r.put("e")
	require.Equal(t, r.told(web)[2:], r.told(all), "both are told the same, once")
	outcome.synthetic = after.Synthetic
	return outcome
}

// told returns what the watch was told, as key=value, in order, and demands
// that it is what happened.
func (r *cacheFixture) told(w *engine.Watch[thing]) (changes []string) {
	r.t.Helper()
	last, state := engine.Revision(0), map[string]int{}
	for ev, err := range w.Events() {
		if errors.Is(err, engine.ErrIdle) {
			break
		}
		require.NoError(r.t, err)
		require.Greater(r.t, ev.Revision, last)
		last = ev.Revision
		changes = append(changes, fmt.Sprintf("%v %s=%d", ev.Type, ev.Key(), ev.Object.Value.N))
		if state[ev.Key()] = ev.Object.Value.N; ev.Type == engine.Deleted {
			delete(state, ev.Key())
		}
	}
	require.Equal(r.t, map[string]int{"a": 4, "b": 3, "c": 5, "d": 6, "e": 7}, state)
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
	r := newCacheFixture(t, 1)
	r.put("a")
	w := r.watch(engine.WatchOptions{})
	r.trap.reads = reads
	_, err := r.engine.Put(t.Context(), thing{Key: "b"})
	require.NoError(t, err)
	if down {
		r.fault(0, faulty.Fail(errOutage), faulty.OpList)
	}
	began := r.clock.Now()
	err = r.engine.WaitFor(t.Context(), 1000)
	if !r.cacheFailed() || errors.Is(err, engine.ErrCacheFailed) {
		return false
	}
	require.Equal(t, engine.DefaultFreshnessTimeout, r.clock.Now().Sub(began), "in time")
	if down {
		var notReady *engine.NotReadyError
		require.ErrorAs(t, err, &notReady)
		require.ErrorIs(t, err, errOutage)
	} else {
		require.Equal(t, &engine.FutureError{Requested: 1000, Current: 3}, err)
	}
	r.heal()
	r.pass(10 * time.Second)
	require.NoError(t, w.Err())
	require.EqualValues(t, 2, r.engine.Stats().Generation)
	seen, end := r.read(w)
	require.NoError(t, end)
	require.Len(t, seen, 1)
	require.True(t, strings.HasPrefix(seen[0], "ADDED b@3"), seen)
	return true
}
