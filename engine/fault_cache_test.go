package engine_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/engine"
)

// pitfall is a clock that panics once, when the watchCache has looked at it so
// many times.
type pitfall struct {
	actors.Clock
	looks int
}

func (c *pitfall) Now() time.Time {
	if c.looks > 0 && calledByCache() {
		if c.looks--; c.looks == 0 {
			panic("what is time?")
		}
	}
	return c.Clock.Now()
}

// calledByCache reports whether the caller's caller is the watchCache actor.
func calledByCache() bool {
	caller := make([]uintptr, 1)
	runtime.Callers(3, caller)
	frame, _ := runtime.CallersFrames(caller).Next()
	return strings.Contains(frame.Function, "/actors/watchcache.(*cache[")
}

// cacheRig is a rig whose watchCache can be made to fail, whose source hands out
// one event at a time, and whose calls let up to a minute pass while they wait.
type cacheRig struct {
	*rig
	pitfall  *pitfall
	executor *ticking
}

func newCacheRig(t *testing.T, seed uint64) *cacheRig {
	r := &cacheRig{}
	r.rig = newRig(t, func(host *engine.HostConfig, _ *engine.Config[thing]) {
		r.pitfall = &pitfall{Clock: host.Clock}
		r.executor = &ticking{Seeded: actors.NewSeeded(seed), clock: host.Clock.(*actors.VirtualClock)}
		host.Clock, host.Executor = r.pitfall, r.executor
	})
	r.rig.executor = r.executor.Seeded
	r.rig.executor.Run()
	r.source.batch = 1
	r.executor.seconds = 60
	t.Cleanup(func() { r.executor.seconds = 0 })
	return r
}

// requireFailedOnce: the watchCache failed and was brought back, and nothing
// else was.
func (r *cacheRig) requireFailedOnce() {
	r.t.Helper()
	require.Len(r.t, r.failures, 1)
	require.Equal(r.t, "things/watchCache", r.failures[0].Actor)
	require.EqualValues(r.t, 1, r.engine.Stats().Failures)
}

// The watchCache fails while somebody waits for a revision, at whatever message
// on the way there; changes before it may have been applied and not yet shown.
// It restarts, lists, and brings the difference; the waiter is answered; watches
// live on in a new generation and are told everything once. Only if the wait is
// the very message at which it fails, the waiter is told to try again.
func TestCacheThatFailsWhileSomebodyWaits(t *testing.T) {
	synthetic := uint64(0)
	for looks := 1; looks <= 6; looks++ {
		for seed := uint64(1); seed <= 10; seed++ {
			t.Run(fmt.Sprintf("look=%d/seed=%d", looks, seed), func(t *testing.T) {
				synthetic += failWhileWaiting(t, looks, seed)
			})
		}
	}
	require.Positive(t, synthetic, "some failure lost changes that only the list brought back")
}

// failWhileWaiting returns how many changes the list brought back.
func failWhileWaiting(t *testing.T, looks int, seed uint64) uint64 {
	r := newCacheRig(t, seed)
	r.put("a")
	r.put("gone")
	all, web := r.watch(engine.WatchOptions{}), r.watch(engine.WatchOptions{From: 1, Labels: "app=web", Policy: engine.Terminate})
	before := r.engine.Stats()
	require.EqualValues(t, 1, before.Generation)

	r.pitfall.looks = looks
	for _, key := range []string{"b", "a", "c", "d"} { // unseen by the engine so far
		r.n++
		_, err := r.engine.Put(t.Context(), thing{Key: key, App: "web", N: r.n})
		require.NoError(t, err)
	}
	gone, err := r.engine.Delete(t.Context(), "gone", engine.DeleteOptions[thing]{})
	require.NoError(t, err)
	if err := r.engine.WaitFor(t.Context(), gone.Revision); err != nil {
		require.ErrorIs(t, err, engine.ErrNotReady)
		require.ErrorIs(t, err, engine.ErrCacheFailed)
		require.Equal(t, 1, looks, "the wait is the first message")
		require.NoError(t, r.engine.WaitFor(t.Context(), gone.Revision))
	}
	r.requireFailedOnce()

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
	return after.Synthetic
}

// told returns what the watch was told, as key=value, in order, and demands that
// it is what happened.
func (r *cacheRig) told(w *engine.Watch[thing]) (changes []string) {
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

// What a waiter waits for does not come: the cache that took over tells it so
// when its time is up, with the reason of that moment.
func TestCacheThatFailsTellsWhoWaitsInVain(t *testing.T) {
	for name, down := range map[string]bool{"the revision does not come": false, "storage is lost": true} {
		t.Run(name, func(t *testing.T) {
			r := newCacheRig(t, 1)
			r.put("a")
			w := r.watch(engine.WatchOptions{})
			r.pitfall.looks = 2 // the first is the wait's
			_, err := r.engine.Put(t.Context(), thing{Key: "b"})
			require.NoError(t, err)
			if down {
				r.source.failLists = 1 << 30
			}
			began := r.clock.Now()
			err = r.engine.WaitFor(t.Context(), 1000)
			r.requireFailedOnce()
			require.Equal(t, engine.DefaultFreshnessTimeout, r.clock.Now().Sub(began), "in time")
			if down {
				var notReady *engine.NotReadyError
				require.ErrorAs(t, err, &notReady)
				require.ErrorIs(t, err, errOutage)
			} else {
				require.Equal(t, &engine.FutureError{Requested: 1000, Current: 3}, err)
			}
			r.source.heal()
			r.pass(10 * time.Second)
			require.NoError(t, w.Err())
			require.EqualValues(t, 2, r.engine.Stats().Generation)
			seen, end := r.read(w)
			require.NoError(t, end)
			require.Len(t, seen, 1)
			require.True(t, strings.HasPrefix(seen[0], "ADDED b@3"), seen)
		})
	}
}
