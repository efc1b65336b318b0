package actors_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/clock"
)

// brokenClock panics when it is asked for a timer.
type brokenClock struct{ clock.Clock }

func (brokenClock) AfterFunc(time.Duration, func()) clock.Timer { panic("broken clock") }

func TestWatchdog_AClockThatPanicsEndsItOnly(t *testing.T) {
	failed := make(chan actors.Failure, 10)
	sys := newSystem(t, actors.SystemConfig{Clock: brokenClock{clock.Real()}, OnFailure: func(f actors.Failure) { failed <- f }})
	ref := spawnProbe(sys, &probe{journal: new(journal), name: "a"}, actors.Options{})
	for range 10 {
		settle(t, ref)
	}
	f := <-failed
	require.EqualError(t, &f, "actor timer failed: broken clock")
	require.Empty(t, failed)
	<-sys.Held() // since any turn may hold a worker
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
	sys = newSystem(t, actors.SystemConfig{Clock: brokenClock{clock.Real()}, OnFailure: func(actors.Failure) {
		<-made
		closed <- sys.Close(context.Background())
	}})
	spawnProbe(sys, &probe{journal: new(journal), name: "a"}, actors.Options{})
	close(made)
	require.ErrorIs(t, <-closed, actors.ErrInTurn)
	require.NoError(t, sys.Close(t.Context()))
}
