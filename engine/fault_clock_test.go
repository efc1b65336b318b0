package engine_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/clock/clocktest"
	"github.com/watchmill/watchmill/engine"
)

// The wall clock is corrected by a day, forwards or backwards, and a year.
// Bookmarks keep coming, no watch ends for it, and the window does not lose
// what it should still keep.
func TestFault_ClockJumps(t *testing.T) {
	for _, jump := range []time.Duration{24 * time.Hour, -24 * time.Hour, 365 * 24 * time.Hour, -time.Second} {
		t.Run(fmt.Sprint(jump), func(t *testing.T) {
			f := newFixture(t, nil)
			w := f.watch(engine.WatchOptions{Bookmarks: true})
			slow := f.watch(engine.WatchOptions{Policy: engine.Terminate, Buffer: 1})
			f.put("a")
			f.requireReads(w, "ADDED a@2")
			f.clock.Jump(jump)
			f.pass(75 * time.Second)
			f.requireReads(w, "BOOKMARK@2")
			f.put("a")
			f.requireReads(w, "MODIFIED a@3")
			f.requireReads(slow, "ADDED a@2", "MODIFIED a@3")
			f.clock.Jump(-jump)
			f.pass(75 * time.Second)
			f.requireReads(w, "BOOKMARK@3")
			f.put("a")
			again := f.watch(engine.WatchOptions{From: 3})
			f.requireReads(again, "MODIFIED a@4")
			require.Zero(t, f.engine.Stats().Failures)
		})
	}
}

// A watch's timeout is time that passes, not what the wall clock shows.
func TestFault_ClockJumpEndsNoWatchEarly(t *testing.T) {
	f := newFixture(t, nil)
	w := f.watch(engine.WatchOptions{Timeout: time.Minute})
	f.clock.Jump(24 * time.Hour)
	f.pass(30 * time.Second)
	require.NoError(t, w.Err())
	f.clock.Jump(-24 * time.Hour)
	f.pass(31 * time.Second)
	require.ErrorIs(t, w.Err(), engine.ErrDeadline)
}

// The pause before a handler is called again is lost, not the call, nor the watch.
func TestFault_ClockFailsAtAPauseOfAHandler(t *testing.T) {
	policy := engine.ErrorPolicy{Backoff: 77 * time.Millisecond}
	var wire *clocktest.Failing
	var reported []error
	f := newFixture(t, func(host *engine.HostConfig, c *engine.Config[thing]) {
		wire = &clocktest.Failing{Clock: host.Clock, Counts: func(_ clocktest.Call, d time.Duration) bool { return d == policy.Backoff }}
		host.Clock = wire
		c.OnError = func(err error) { reported = append(reported, err) }
	})
	a := newAttempts(f, map[string]int{"a": 1, "b": 1})
	w, err := f.engine.Process(t.Context(), engine.WatchOptions{Name: "billing"}, policy, a.handle)
	require.NoError(t, err)
	wire.Fail(clocktest.AfterFunc, 0, 1)
	f.put("a")
	require.NoError(t, w.Err())
	require.Equal(t, []string{"a 0s", "a 0s"}, a.calls)
	require.Len(t, reported, 1)
	require.EqualError(t, reported[0], "billing: no pause before the next attempt: Clock.AfterFunc panicked: the clock fails: AfterFunc")
	f.put("b")
	f.pass(time.Second)
	require.Equal(t, []string{"a 0s", "a 0s", "b 0s", "b 100ms"}, a.calls, "it is asked again")
	require.Empty(t, f.failures)
}

// unstoppable is a clock whose timers of that time panic when they are stopped.
type unstoppable struct {
	clock.Clock
	of time.Duration
}

func (c unstoppable) AfterFunc(d time.Duration, f func()) clock.Timer {
	timer := c.Clock.AfterFunc(d, f)
	if d == c.of {
		return panickingTimer{}
	}
	return timer
}

type panickingTimer struct{}

func (panickingTimer) Stop() bool { panic("the timer fails") }

func TestFault_ClockFailsAtTheEndOfAHandlersPause(t *testing.T) {
	policy := engine.ErrorPolicy{Backoff: 77 * time.Millisecond}
	f := newFixture(t, func(host *engine.HostConfig, _ *engine.Config[thing]) {
		host.Clock = unstoppable{host.Clock, policy.Backoff}
	})
	a := newAttempts(f, map[string]int{"a": 1})
	w, err := f.engine.Process(t.Context(), engine.WatchOptions{}, policy, a.handle)
	require.NoError(t, err)
	f.put("a")
	w.Stop()
	require.ErrorIs(t, w.Err(), engine.ErrStopped)
	f.pass(time.Second)
	require.Equal(t, []string{"a 0s"}, a.calls)
	require.Empty(t, f.failures)
}

// The engine's own actors fail, each time at the next place where one arms or
// stops a timer, or reads the clock: watches live on and miss nothing, or calls say at once that
// they could not be started, and the counts of watches are true.
func TestFault_CoreActorsFail(t *testing.T) {
	for _, call := range []clocktest.Call{clocktest.AfterFunc, clocktest.Now, clocktest.Stop} {
		t.Run(string(call), func(t *testing.T) {
			failed := map[string]bool{}
			for left := 0; ; left++ {
				wire, names := failAfter(t, call, left)
				for _, name := range names {
					failed[name] = true
				}
				if wire.Left(call) > 0 {
					wire.Fail(call, 0, 0) // it was not reached any more, and is not to be when the engine is closed
					break
				}
			}
			require.True(t, failed["things/dispatcher"] && failed["things/watchCache"], "failed: %v", failed)
			require.Equal(t, call != clocktest.Stop, failed["things/reflector"], "it has no timer to stop here")
		})
	}
}

// failAfter has the engine live through a bit of everything, with a failure after so
// many calls of a method of the clock. It returns the names of the actors that failed.
func failAfter(t *testing.T, call clocktest.Call, after int) (wire *clocktest.Failing, failed []string) {
	var executor *advancing
	f := newFixture(t, func(host *engine.HostConfig, c *engine.Config[thing]) {
		executor = &advancing{Seeded: host.Executor.(singleStepping).Seeded, clock: host.Clock.(*clock.Virtual)}
		wire = &clocktest.Failing{Clock: host.Clock, Counts: func(clocktest.Call, time.Duration) bool { return actors.InTurn() }}
		host.Clock, host.Executor = wire, executor
		c.Window.MaxEvents = 64
	})
	all := f.watch(engine.WatchOptions{})
	web := f.watch(engine.WatchOptions{Labels: "app=web"})
	var handled []string
	_, err := f.engine.Handle(t.Context(), engine.WatchOptions{}, func(ev engine.Event[thing]) {
		handled = append(handled, fmt.Sprint(ev.Key(), "@", ev.Revision))
	})
	require.NoError(t, err)

	wire.Fail(call, after, 1)
	f.put("a")
	for _, opts := range []engine.WatchOptions{{Bookmarks: true}, {Timeout: time.Minute}, {Policy: engine.Terminate, Buffer: 1}} {
		executor.seconds = 60 // for the cache to be listed again
		w, err := f.engine.Watch(t.Context(), opts)
		executor.seconds = 0
		require.NotErrorIs(t, err, engine.ErrIdle, "the call must not be left without an answer")
		if err == nil && opts.Timeout > 0 {
			require.NoError(t, w.Err())
			w.Stop() // before its timeout
		}
	}
	f.put("b")
	f.storage.BreakWatches(errOutage)
	f.pass(3 * time.Second)
	for range 3 {
		f.put("c")
	}
	_ = f.engine.WaitForRevision(t.Context(), 1000) // waits in vain
	f.pass(70 * time.Second)
	rev := f.put("d")
	f.pass(3 * time.Second)
	require.EqualValues(t, len(f.engine.Watches()), f.engine.Stats().Watches, "after %d calls", after)

	for _, w := range []*engine.Watch[thing]{all, web} {
		f.requireKnows(w, rev)
	}
	require.Contains(t, handled, fmt.Sprint("d@", rev))
	l, err := f.engine.List(t.Context(), engine.ListOptions{})
	require.NoError(t, err)
	require.Len(t, l.Items, 4)
	for _, failure := range f.failures {
		failed = append(failed, failure.Actor)
	}
	return wire, failed
}

// requireKnows demands that the watch lives, has the newest of each key, the last
// at rev, and that its revisions increase.
func (f *fixture) requireKnows(w *engine.Watch[thing], rev engine.Revision) {
	f.t.Helper()
	last, keys := engine.Revision(0), map[string]int{}
	for ev, err := range w.Events() {
		if err != nil {
			require.ErrorIs(f.t, err, engine.ErrIdle)
			break
		}
		require.Greater(f.t, ev.Revision, last)
		last, keys[ev.Key()] = ev.Revision, ev.Object.Value.N
	}
	require.Equal(f.t, rev, last)
	require.Equal(f.t, map[string]int{"a": 1, "b": 2, "c": 5, "d": 6}, keys)
}

// A watch without a cache whose own parts fail, each time at the next place where one arms a
// timer, or reads the clock, says so: the engine is not closed, and another watch goes on.
func TestFault_WatchWithoutCacheSaysThatItHasFailed(t *testing.T) {
	for _, call := range []clocktest.Call{clocktest.AfterFunc, clocktest.Now} {
		t.Run(string(call), func(t *testing.T) {
			ended := 0
			for left := 0; ; left++ {
				var wire *clocktest.Failing
				f := newFixture(t, func(host *engine.HostConfig, c *engine.Config[thing]) {
					c.NoCache = true
					wire = &clocktest.Failing{Clock: host.Clock, Counts: func(clocktest.Call, time.Duration) bool { return actors.InTurn() }}
					host.Clock = wire
				})
				beside := f.watch(engine.WatchOptions{})
				wire.Fail(call, left, 1)
				w, err := f.engine.Watch(t.Context(), engine.WatchOptions{Bookmarks: true, Policy: engine.Terminate, Buffer: 1})
				require.NotErrorIs(t, err, engine.ErrEngineClosed)
				f.put("a")
				f.put("a")
				f.pass(70 * time.Second)
				if wire.Left(call) > 0 {
					break // it was not reached any more
				}
				if err == nil && w.Err() != nil {
					ended++
					require.NotErrorIs(t, w.Err(), engine.ErrEngineClosed)
				}
				if beside.Err() == nil {
					f.requireReads(beside, "ADDED a@2", "MODIFIED a@3")
				} else {
					require.NotErrorIs(t, beside.Err(), engine.ErrEngineClosed)
				}
			}
			require.Positive(t, ended)
		})
	}
}

// exitingClock is a clock that ends the goroutine when it is asked for a timer of that time, once.
type exitingClock struct {
	clock.Clock
	of   time.Duration
	once *sync.Once
}

func (c exitingClock) AfterFunc(d time.Duration, f func()) clock.Timer {
	if d == c.of {
		c.once.Do(runtime.Goexit)
	}
	return c.Clock.AfterFunc(d, f)
}

// The call runs the dispatcher's turn, whose last timer is the one of Progress.
func TestFault_AClockThatEndsTheCallersGoroutineLeavesNoWatch(t *testing.T) {
	newEngine(t, nil) // what all hosts share is not made in the bubble
	synctest.Test(t, func(t *testing.T) {
		once := new(sync.Once)
		host := hostFor(t, engine.HostConfig{Clock: exitingClock{engine.RealClock(), 100 * time.Millisecond, once}})
		e, ctx := newEngine(t, func(c *engine.Config[pod]) { c.Host = host })
		_, err := e.Create(ctx, pod{Name: "a"})
		require.NoError(t, err)
		synctest.Wait()
		returned := false
		var over sync.WaitGroup
		over.Go(func() {
			_, _ = e.Watch(ctx, engine.WatchOptions{From: 1, Bookmarks: true, Progress: true})
			returned = true
		})
		over.Wait()
		require.False(t, returned)
		synctest.Wait()
		require.Empty(t, e.Watches())
	})
}

// Close reads no clock before it has told the actors to stop.
func TestFault_ClockThatFailsAtCloseLeavesNoActors(t *testing.T) {
	var wire *clocktest.Failing
	f := newFixture(t, func(host *engine.HostConfig, _ *engine.Config[thing]) {
		wire = &clocktest.Failing{Clock: host.Clock, Counts: func(clocktest.Call, time.Duration) bool { return !actors.InTurn() }}
		host.Clock = wire
	})
	f.watch(engine.WatchOptions{Name: "unread"})
	f.put("a")
	wire.Fail(clocktest.Now, 0, 1<<20)
	require.NotPanics(t, func() { require.NoError(t, f.engine.Close()) })
	require.Len(t, f.engine.Stats().Undelivered, 1)
}

// The dispatcher is busy, so that the call needs a timer. The watch is registered once no caller waits for it.
func TestFault_AClockThatFailsTheCallersTimerLeavesNoWatch(t *testing.T) {
	newEngine(t, nil) // what all hosts share is not made in the bubble
	synctest.Test(t, func(t *testing.T) {
		wire := &clocktest.Failing{Clock: engine.RealClock(), Counts: func(_ clocktest.Call, d time.Duration) bool { return d > patience }}
		host := hostFor(t, engine.HostConfig{Clock: wire})
		release := make(chan struct{})
		e, ctx := newEngine(t, func(c *engine.Config[pod]) {
			c.Host, c.OnEnd = host, func(engine.WatchEnd) { <-release }
		})
		w, err := e.Watch(ctx, engine.WatchOptions{})
		require.NoError(t, err)
		w.Stop()
		time.Sleep(2 * time.Second) // the turn holds its worker for too long
		wire.Fail(clocktest.AfterFunc, 0, 1)
		require.Panics(t, func() { _, _ = e.Watch(ctx, engine.WatchOptions{}) })
		close(release)
		synctest.Wait()
		require.Empty(t, e.Watches())
		require.Zero(t, e.Stats().Watches)
	})
}
