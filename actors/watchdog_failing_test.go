package actors_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/clock"
)

// brokenClock fails when it is asked for a timer, after that many for which it does not, and when it
// is to stop one.
type brokenClock struct {
	clock.Clock
	works int
	fail  func()
}

func (c *brokenClock) AfterFunc(d time.Duration, f func()) clock.Timer {
	if c.works == 0 {
		c.fail()
	}
	c.works--
	return brokenTimer{c.Clock.AfterFunc(d, f), c.fail}
}

type brokenTimer struct {
	clock.Timer
	fail func()
}

func (t brokenTimer) Stop() bool { t.fail(); return t.Timer.Stop() }

// clockFailures are the ways in which a clock fails, with what is told of them.
var clockFailures = map[string]func(){
	"broken clock":                      func() { panic("broken clock") },
	"goroutine ended by runtime.Goexit": runtime.Goexit,
}

// eachClockFailure runs a test with each of them, of which OnFailure must be told once.
func eachClockFailure(t *testing.T, works int, test func(t *testing.T, sys *actors.System, virtual *clock.Virtual)) {
	for what, fail := range clockFailures {
		t.Run(what, func(t *testing.T) {
			virtual, failed := clock.NewVirtual(start), make(chan string, 10)
			sys := newSystem(t, actors.SystemConfig{
				Workers: 1, Clock: &brokenClock{Clock: virtual, works: works, fail: fail},
				OnFailure: func(f actors.Failure) { failed <- f.Error() },
			})
			test(t, sys, virtual)
			require.Equal(t, "actor timer failed: "+what, <-failed)
			require.Empty(t, failed)
		})
	}
}

func TestWatchdog_AClockThatFailsAWorkerEndsItOnly(t *testing.T) {
	eachClockFailure(t, 0, func(t *testing.T, sys *actors.System, _ *clock.Virtual) {
		ref := spawnProbe(sys, &probe{journal: new(journal), name: "a"}, actors.Options{})
		for range 10 {
			settle(t, ref)
		}
		<-sys.Held() // since any turn may hold a worker
	})
}

func TestWatchdog_AClockThatFailsACheckEndsItOnly(t *testing.T) {
	eachClockFailure(t, 1, func(t *testing.T, sys *actors.System, virtual *clock.Virtual) {
		ref, p := spawnProbe(sys, &probe{journal: new(journal), name: "a"}, actors.Options{}), newPause(t)
		ref.Tell(p.message())
		<-p.entered
		apart(func() { virtual.Advance(time.Second) })
		p.release()
		settle(t, ref)
		<-sys.Held()
	})
}

func TestWatchdog_AClockThatFailsASenderCostsNoTurn(t *testing.T) {
	newSystem(t, actors.SystemConfig{}) // what all systems share is not made in the bubble
	for what, fail := range clockFailures {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var failed failures
				_, ref, p := spawnUnwatched(t, fail, failed.add)
				apart(func() { ref.Ask(say("1")) })
				require.Equal(t, "a got 1", p.take())
				require.Equal(t, "timer: "+what+": Resume", failed.take())
			})
		})
	}
}

// spawnUnwatched spawns an idle actor on a system whose clock fails when the next turn is to be watched.
func spawnUnwatched(t *testing.T, fail func(), onFailure func(actors.Failure)) (*actors.System, *actors.Ref[do], *probe) {
	t.Helper()
	virtual := clock.NewVirtual(start)
	sys := newSystem(t, actors.SystemConfig{
		Workers: 1, Clock: &brokenClock{Clock: virtual, works: 1, fail: fail}, OnFailure: onFailure,
	})
	p := &probe{journal: new(journal), name: "a"}
	ref := spawnIdle(t, sys, p)
	synctest.Wait() // the worker has no turn any more
	virtual.Advance(time.Second)
	require.Zero(t, virtual.Pending())
	return sys, ref, p
}

func TestClose_ThoughTheClockFailsToStopTheWatchdog(t *testing.T) {
	eachClockFailure(t, 1, func(t *testing.T, sys *actors.System, virtual *clock.Virtual) {
		settle(t, spawnProbe(sys, &probe{journal: new(journal), name: "a"}, actors.Options{}))
		require.Equal(t, 1, virtual.Pending())
		apart(func() { _ = sys.Close(context.Background()) })
		require.NoError(t, sys.Close(t.Context()))
		virtual.Advance(time.Second)
	})
}

// apart calls f on a goroutine, which f may end, and waits for that.
func apart(f func()) {
	var over sync.WaitGroup
	over.Go(f)
	over.Wait()
}

// The check that finds the turn calls OnFailure, and Close would wait for it.
func TestClose_OfTheOnFailureOfACheckGoesOnInTheBackground(t *testing.T) {
	virtual, p := clock.NewVirtual(start), newPause(t)
	closed := make(chan error, 1)
	var sys *actors.System
	sys = newSystem(t, actors.SystemConfig{Workers: 1, Clock: virtual, OnFailure: func(actors.Failure) {
		p.release()
		closed <- sys.Close(context.Background())
	}})
	spawnProbe(sys, &probe{journal: new(journal), name: "a"}, actors.Options{}).Tell(p.message())
	<-p.entered
	virtual.Advance(2 * time.Second)
	require.ErrorIs(t, <-closed, actors.ErrInTurn)
	require.NoError(t, sys.Close(t.Context()))
}

// A worker that cannot arm the timer calls OnFailure beside its turns, and Close would wait for it.
func TestClose_OfTheOnFailureOfAWorkerGoesOnInTheBackground(t *testing.T) {
	made, closed := make(chan struct{}), make(chan error, 1)
	var sys *actors.System
	sys = newSystem(t, actors.SystemConfig{Clock: &brokenClock{Clock: clock.Real(), fail: func() { panic("broken clock") }}, OnFailure: func(actors.Failure) {
		<-made
		closed <- sys.Close(context.Background())
	}})
	spawnProbe(sys, &probe{journal: new(journal), name: "a"}, actors.Options{})
	close(made)
	require.ErrorIs(t, <-closed, actors.ErrInTurn)
	require.NoError(t, sys.Close(t.Context()))
}

// A sender that cannot arm the timer calls OnFailure before the turn, and Close would wait for it.
func TestClose_OfTheOnFailureOfASenderGoesOnInTheBackground(t *testing.T) {
	newSystem(t, actors.SystemConfig{}) // what all systems share is not made in the bubble
	synctest.Test(t, func(t *testing.T) {
		closed := make(chan error, 1)
		var sys *actors.System
		var ref *actors.Ref[do]
		sys, ref, _ = spawnUnwatched(t, func() { panic("broken clock") }, func(actors.Failure) { closed <- sys.Close(context.Background()) })
		ref.Ask(say("1"))
		require.ErrorIs(t, <-closed, actors.ErrInTurn)
		require.NoError(t, sys.Close(context.Background()))
	})
}
