package actors_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/usercode"
)

// spawnIdle spawns p on a system with one worker and waits until it has started and is idle.
func spawnIdle(t *testing.T, sys *actors.System, p *probe) *actors.Ref[do] {
	t.Helper()
	ref := spawnProbe(sys, p, actors.Options{})
	started := make(chan struct{})
	ref.Tell(run("start", func(*actors.Context) { close(started) }))
	<-started
	holdWorker(sys)() // the turn has ended, too
	p.take()
	return ref
}

func TestAsk_AnIdleActorNeedsNoWorker(t *testing.T) {
	sys := newSystem(t, actors.SystemConfig{Workers: 1})
	p := &probe{journal: new(journal), name: "a"}
	ref := spawnIdle(t, sys, p)
	release := holdWorker(sys)
	defer release()
	for range 3 {
		require.True(t, ref.Ask(run("1", func(*actors.Context) { p.note("in a turn: %v", actors.InTurn()) })))
		require.Equal(t, "a got 1; in a turn: true", p.take())
	}
	require.False(t, actors.InTurn())
}

func TestAsk_ABusyActorTakesTheMessageInItsTurn(t *testing.T) {
	sys := newSystem(t, actors.SystemConfig{Workers: 1})
	p := &probe{journal: new(journal), name: "a"}
	ref := spawnIdle(t, sys, p)
	entered, leave, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	ref.Tell(run("1", func(*actors.Context) { close(entered); <-leave }))
	<-entered
	ref.Tell(say("2"))
	require.True(t, ref.Ask(run("3", func(*actors.Context) { close(done) })))
	require.Equal(t, "a got 1", p.take(), "Ask has not waited")
	close(leave)
	<-done
	require.Equal(t, "a got 2; a got 3", p.take())
}

// Ask handles its own message and no later ones, however many have come.
func TestAsk_LeavesLaterMessagesToTheWorkers(t *testing.T) {
	sys := newSystem(t, actors.SystemConfig{Workers: 1})
	p := &probe{journal: new(journal), name: "a"}
	ref := spawnIdle(t, sys, p)
	release := holdWorker(sys)
	done := make(chan struct{})
	ref.Ask(run("1", func(*actors.Context) {
		for range 10 {
			ref.Tell(say("more"))
		}
		ref.Tell(run("last", func(*actors.Context) { close(done) }))
	}))
	require.Equal(t, 11, ref.Len())
	release()
	<-done
	require.Zero(t, ref.Len())
}

// On an executor other than a pool, Ask is Tell.
func TestAsk_LeavesTheTurnToExecutorsThatDecideWhereItRuns(t *testing.T) {
	sys, seeded := newSeeded(t, actors.SystemConfig{})
	p := &probe{journal: new(journal), name: "a"}
	ref := spawnProbe(sys, p, actors.Options{})
	seeded.Run()
	p.take()
	require.True(t, ref.Ask(say("1")))
	require.Empty(t, p.take())
	require.Equal(t, 1, seeded.Run())
	require.Equal(t, "a got 1", p.take())

	blocking := newSystem(t, actors.SystemConfig{Workers: 1})
	leave := make(chan struct{})
	slow := spawnProbe(blocking, &probe{journal: new(journal), name: "b"}, actors.Options{Executor: blocking.Blocking()})
	for range 3 {
		require.True(t, slow.Ask(run("block", func(*actors.Context) { <-leave })))
	}
	close(leave)
}

func TestAsk_OfAStoppedActorIsRefused(t *testing.T) {
	sys := newSystem(t, actors.SystemConfig{Workers: 1})
	ref := spawnIdle(t, sys, &probe{journal: new(journal), name: "a"})
	ref.Stop()
	require.False(t, ref.Ask(say("1")))
}

func TestAsk_APanicIsTheActorsFailure(t *testing.T) {
	var failed failures
	sys := newSystem(t, actors.SystemConfig{Workers: 1, OnFailure: failed.add})
	ref := spawnIdle(t, sys, &probe{journal: new(journal), name: "a"})
	require.True(t, ref.Ask(boom("1")))
	require.NoError(t, sys.Close(context.Background()))
	require.Equal(t, "a: boom 1: Stop", failed.take())
}

func TestAsk_AGoexitIsTheActorsFailureAndEndsTheSender(t *testing.T) {
	failed := make(chan actors.Failure, 1)
	sys := newSystem(t, actors.SystemConfig{Workers: 1, OnFailure: func(f actors.Failure) { failed <- f }})
	ref := spawnIdle(t, sys, &probe{journal: new(journal), name: "a"})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ref.Ask(run("exit", func(*actors.Context) { runtime.Goexit() }))
		panic("the goroutine has ended")
	}()
	<-ended
	f := <-failed
	require.ErrorIs(t, &f, usercode.ErrGoexit)
	require.NoError(t, sys.Close(context.Background()))
}

func TestAsk_CloseInItsTurnDoesNotWaitForItself(t *testing.T) {
	sys := newSystem(t, actors.SystemConfig{Workers: 1})
	ref := spawnIdle(t, sys, &probe{journal: new(journal), name: "a"})
	var err error
	ref.Ask(run("close", func(*actors.Context) { err = sys.Close(context.Background()) }))
	require.ErrorIs(t, err, actors.ErrInTurn)
	require.NoError(t, sys.Close(context.Background()))
}

func TestAsk_CloseOfThePoolWaitsForItsTurn(t *testing.T) {
	newSystem(t, actors.SystemConfig{}) // what all systems share is not made in the bubble
	synctest.Test(t, func(t *testing.T) {
		pool := actors.NewPool(2)
		sys, err := actors.NewSystem(actors.SystemConfig{Executor: pool, Logger: silent})
		require.NoError(t, err)
		p, turn, asked := &probe{journal: new(journal), name: "a"}, newPause(t), make(chan struct{})
		ref := spawnProbe(sys, p, actors.Options{})
		synctest.Wait()
		p.take()
		go func() {
			defer close(asked)
			ref.Ask(turn.message())
		}()
		<-turn.entered
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			pool.Close()
		}()
		synctest.Wait() // or the workers might not have left yet
		ref.Tell(say("1"))
		ref.Tell(say("2"))
		turn.release()
		<-asked
		<-closed
		require.Equal(t, "a got pause; a got 1; a got 2", p.take())
		require.True(t, ref.Ask(say("3")))
		require.Empty(t, p.take(), "after Close nothing runs")
	})
}
