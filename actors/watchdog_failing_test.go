package actors_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/clock"
)

// brokenClock fails when it is asked for a timer, after so many for which it does not, and when it
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
