package actors_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/clock"
)

// pause is a turn that lasts until it is released, at the latest by the end of
// the test.
type pause struct {
	entered, leave chan struct{}
	release        func()
}

func newPause(tb testing.TB) *pause {
	p := &pause{entered: make(chan struct{}), leave: make(chan struct{})}
	p.release = sync.OnceFunc(func() { close(p.leave) })
	tb.Cleanup(p.release)
	return p
}

func (p *pause) turn() { close(p.entered); <-p.leave }

func (p *pause) message() do { return run("pause", func(*actors.Context) { p.turn() }) }

const held = "turn has held a worker of the pool for more than 1s: Resume"

func TestWatchdog_NamesTheActorWhoseTurnHoldsAWorker(t *testing.T) {
	var log strings.Builder
	var failed failures
	clock := clock.NewVirtual(start)
	sys := newSystem(t, actors.SystemConfig{
		Workers: 1, Clock: clock, OnFailure: failed.add, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	f := spawnProbe(sys, &probe{journal: new(journal), name: "handler"}, actors.Options{})
	other := spawnProbe(sys, &probe{journal: new(journal), name: "other"}, actors.Options{})
	for range 2 { // each turn that does is reported, once
		p := newPause(t)
		f.Tell(p.message())
		<-p.entered
		clock.Advance(time.Second)
		require.Empty(t, failed.take(), "not before the limit")
		clock.Advance(time.Second / 4)
		require.Equal(t, "handler: "+held, failed.take())
		clock.Advance(time.Hour)
		require.Empty(t, failed.take(), "no more than once")
		p.release()
		settle(t, other) // which has a turn only when that one has ended
	}
	require.Equal(t, 2, strings.Count(log.String(), `level=WARN msg="turn holds a worker of the pool" actor=handler`))
	require.True(t, f.Alive())
}

// Other senders wait for an actor whose turn its sender runs as for one that holds a worker.
func TestWatchdog_NamesTheActorWhoseTurnHoldsItsSender(t *testing.T) {
	var failed failures
	clock := clock.NewVirtual(start)
	sys := newSystem(t, actors.SystemConfig{Workers: 1, Clock: clock, OnFailure: failed.add})
	ref := spawnIdle(t, sys, &probe{journal: new(journal), name: "handler"})
	for range 2 { // each turn that does is reported, once
		p, over := newPause(t), make(chan struct{})
		go func() {
			defer close(over)
			ref.Ask(p.message())
		}()
		<-p.entered
		clock.Advance(time.Second)
		require.Empty(t, failed.take(), "not before the limit")
		clock.Advance(time.Second / 4)
		require.Equal(t, "handler: "+held, failed.take())
		<-sys.Held()
		clock.Advance(time.Hour)
		require.Empty(t, failed.take(), "no more than once")
		p.release()
		<-over
		for clock.Pending() > 0 {
			clock.Advance(time.Second)
		}
		select {
		case <-sys.Held():
			require.Fail(t, "no turn holds its sender any more")
		default:
		}
	}
}

// settle returns when the actor has handled its messages.
func settle(t *testing.T, ref *actors.Ref[do]) {
	t.Helper()
	done := make(chan struct{})
	require.True(t, ref.Tell(run("", func(*actors.Context) { close(done) })))
	<-done
}

func TestWatchdog_TheFailureCanBeMatched(t *testing.T) {
	failed := make(chan actors.Failure, 1)
	clock := clock.NewVirtual(start)
	sys := newSystem(t, actors.SystemConfig{Clock: clock, OnFailure: func(f actors.Failure) { failed <- f }})
	ref := spawnProbe(sys, &probe{journal: new(journal), name: "a"}, actors.Options{})
	p := newPause(t)
	ref.Tell(p.message())
	<-p.entered
	clock.Advance(2 * time.Second)
	f := <-failed
	require.ErrorIs(t, &f, actors.ErrWorkerHeld)
	require.Equal(t, ref.ID(), f.ID)
	p.release()
}

// The bubble's time passes only while the turns sleep.
func TestWatchdog_ReportsNoTurnBelowTheLimit(t *testing.T) {
	newSystem(t, actors.SystemConfig{}) // what all systems share is not made in the bubble
	synctest.Test(t, func(t *testing.T) {
		var failed failures
		sys, err := actors.NewSystem(actors.SystemConfig{Workers: 1, OnFailure: failed.add, Logger: silent})
		require.NoError(t, err)
		ref := spawnProbe(sys, &probe{journal: new(journal), name: "recordingWaker"}, actors.Options{})
		sleep := func(d time.Duration) do { return run("", func(*actors.Context) { time.Sleep(d) }) }
		for range 20 {
			ref.Tell(sleep(90 * time.Millisecond)) // a turn handles many
		}
		time.Sleep(10 * time.Second)
		require.Equal(t, "recordingWaker: "+held, failed.take(), "a turn of 20 messages, 1.8 s together")

		for range 20 {
			ref.Tell(sleep(990 * time.Millisecond))
			time.Sleep(995 * time.Millisecond)
		}
		require.Empty(t, failed.take())
		ref.Tell(sleep(1251 * time.Millisecond))
		time.Sleep(10 * time.Second)
		require.Equal(t, "recordingWaker: "+held, failed.take())
		require.NoError(t, sys.Close(context.Background()))
	})
}

func TestWatchdog_HasNoTimerWhileNothingRuns(t *testing.T) {
	clock := clock.NewVirtual(start)
	sys := newSystem(t, actors.SystemConfig{Workers: 1, Clock: clock})
	require.Zero(t, clock.Pending())
	ref := spawnProbe(sys, &probe{journal: new(journal), name: "a"}, actors.Options{})
	for range 3 {
		p := newPause(t)
		ref.Tell(p.message())
		<-p.entered
		require.Equal(t, 1, clock.Pending())
		require.Zero(t, sys.Timers(), "it is not an actor's timer")
		clock.Advance(time.Second)
		require.Equal(t, 1, clock.Pending())
		p.release()
		// The worker parks a moment after the turn has ended.
		for clock.Pending() > 0 {
			clock.Advance(time.Second)
		}
	}
	settle(t, ref)
	require.NoError(t, sys.Close(t.Context()))
	require.Zero(t, clock.Pending(), "Close stops the timer")
}

// The other actors of the batch have had their turns or wait for them.
func TestWatchdog_NamesTheOneOfABatchThatBlocks(t *testing.T) {
	var failed failures
	clock := clock.NewVirtual(start)
	sys := newSystem(t, actors.SystemConfig{Workers: 1, Clock: clock, OnFailure: failed.add})
	p := newPause(t)
	turns := repeat(10, func() {})
	turns[4] = p.turn
	boxes := spawnGroup(t, sys, "a", turns...)
	actors.WakeAll(sys.Pool(), boxes)
	<-p.entered
	clock.Advance(2 * time.Second)
	require.Equal(t, fmt.Sprintf("a/%v: %s", boxes[4].ID(), held), failed.take())
	p.release()
}

// An actor has its turn and is woken again. Another worker takes it while the
// first is still running the next turn of the same batch.
func TestWatchdog_NamesEachOfTwoThatBlock(t *testing.T) {
	var failed failures
	clock := clock.NewVirtual(start)
	sys := newSystem(t, actors.SystemConfig{Workers: 2, Clock: clock, OnFailure: failed.add})
	var a []*actors.WakeBox
	first, second := newPause(t), newPause(t)
	again := false
	a = spawnGroup(t, sys, "a", func() {
		if again {
			second.turn()
		}
		again = true
	}, first.turn, func() {}, func() {})
	one, other := newPause(t), newPause(t)
	sys.Pool().SubmitAll([]actors.Task{newTask(one.turn), newTask(other.turn)})
	<-one.entered
	<-other.entered
	actors.WakeAll(sys.Pool(), a) // the first worker that is free takes two of four
	one.release()
	<-first.entered
	a[0].Wake()
	other.release()
	<-second.entered
	clock.Advance(2 * time.Second)
	want := []string{
		fmt.Sprintf("a/%v: %s", a[0].ID(), held),
		fmt.Sprintf("a/%v: %s", a[1].ID(), held),
	}
	require.ElementsMatch(t, want, strings.Split(failed.take(), "; "))
	first.release()
	second.release()
}

func TestWatchdog_IgnoresTheBlockingExecutor(t *testing.T) {
	var failed failures
	clock := clock.NewVirtual(start)
	sys := newSystem(t, actors.SystemConfig{Clock: clock, OnFailure: failed.add})
	ref := spawnProbe(sys, &probe{journal: new(journal), name: "a"}, actors.Options{Executor: sys.Blocking()})
	p := newPause(t)
	ref.Tell(p.message())
	<-p.entered
	clock.Advance(time.Hour)
	require.Empty(t, failed.take())
	p.release()
}

func TestWatchdog_APanicOfTheLoggerIsContained(t *testing.T) {
	clock, failed := clock.NewVirtual(start), make(chan actors.Failure, 10)
	sys := newSystem(t, actors.SystemConfig{
		Workers: 1, Clock: clock, Logger: slog.New(panickingHandler{slog.DiscardHandler}),
		OnFailure: func(f actors.Failure) { failed <- f },
	})
	ref := spawnProbe(sys, &probe{journal: new(journal), name: "a"}, actors.Options{})
	p := newPause(t)
	ref.Tell(p.message())
	<-p.entered
	clock.Advance(2 * time.Second)
	require.Equal(t, "logger", (<-failed).Actor)
	require.ErrorIs(t, (<-failed).Reason.(error), actors.ErrWorkerHeld)
	p.release()
}

// isClosed reports whether a channel that nothing is sent on is closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestHeld_IsClosedWhileATurnHoldsAWorker(t *testing.T) {
	clock := clock.NewVirtual(start)
	sys := newSystem(t, actors.SystemConfig{Workers: 1, Clock: clock})
	ref := spawnProbe(sys, &probe{journal: new(journal), name: "a"}, actors.Options{})
	for range 2 {
		before := sys.Held()
		p := newPause(t)
		ref.Tell(p.message())
		<-p.entered
		clock.Advance(900 * time.Millisecond)
		require.False(t, isClosed(before))
		clock.Advance(600 * time.Millisecond)
		require.True(t, isClosed(before))
		require.True(t, isClosed(sys.Held()), "also for a wait that begins now")
		p.release()
		settle(t, ref)
		for clock.Pending() > 0 { // until a check has found the worker idle
			clock.Advance(time.Second)
		}
		require.False(t, isClosed(sys.Held()))
	}
}

func TestHeld_IsAlwaysClosedWithAnExecutorOfTheUser(t *testing.T) {
	sys := newSystem(t, actors.SystemConfig{Executor: actors.NewBlocking()})
	require.True(t, isClosed(sys.Held()))
}

func TestWatchdog_ChecksWhileTurnsEndAndTheSystemCloses(t *testing.T) {
	for seed := range uint64(20) {
		clock := clock.NewVirtual(start)
		sys := newSystem(t, actors.SystemConfig{Workers: 2, Clock: clock})
		boxes := spawnGroup(t, sys, "a", repeat(40, func() {})...)
		var all sync.WaitGroup
		all.Go(func() {
			r := rand.New(rand.NewPCG(seed, 1))
			for range 200 {
				clock.Advance(time.Duration(r.IntN(600)) * time.Millisecond)
			}
		})
		all.Go(func() {
			for range 100 {
				actors.WakeAll(sys.Pool(), boxes)
			}
		})
		if seed%2 == 0 {
			all.Wait()
		}
		require.NoError(t, sys.Close(t.Context()))
		all.Wait()
		require.Zero(t, clock.Pending())
	}
}
