package actors_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/clock/clocktest"
)

// task is a Task made of a function.
type task struct{ f func() }

func (t *task) RunTurn() { t.f() }

func newTask(f func()) actors.Task { return &task{f} }

func TestBlocking_RunsAllTurnsAtOnce(t *testing.T) {
	const n = 50
	b := actors.NewBlocking()
	var all sync.WaitGroup
	all.Add(n)
	meet := newTask(func() { all.Done(); all.Wait() })
	for range n / 2 {
		b.SubmitAll([]actors.Task{meet, meet})
	}
	require.NoError(t, b.Close(context.Background()))
	require.Zero(t, b.Running())
	require.Equal(t, actors.DefaultThroughput, b.Throughput())
}

func TestBlocking_CloseSaysHowManyTurnsAreLeft(t *testing.T) {
	b := actors.NewBlocking()
	leave := make(chan struct{})
	stay := newTask(func() { <-leave })
	b.SubmitAll([]actors.Task{stay, stay})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := b.Close(ctx)
	require.ErrorIs(t, err, actors.ErrStillRunning)
	require.ErrorIs(t, err, context.Canceled)
	require.EqualError(t, err, "still running: 2 blocking turns: context canceled")
	close(leave)
	require.NoError(t, b.Close(context.Background()))
}

// A turn may be submitted after Close, which may be called again.
func TestBlocking_IsClosedAsOftenAsTurnsCome(t *testing.T) {
	b := actors.NewBlocking()
	over, cancel := context.WithCancel(context.Background())
	cancel()
	for range 3 {
		leave := make(chan struct{})
		b.Submit(newTask(func() { <-leave }))
		require.ErrorIs(t, b.Close(over), actors.ErrStillRunning)
		close(leave)
		require.NoError(t, b.Close(context.Background()))
		require.Zero(t, b.Running())
	}
}

// The clock may be the user's, and panic.
func TestTimers_ThatTheClockFailsToArmAreNotCounted(t *testing.T) {
	wall := &clocktest.Failing{Clock: clock.NewVirtual(start)}
	sys, _ := newSeeded(t, actors.SystemConfig{Clock: wall})
	wall.Fail(clocktest.AfterFunc, 0, 1)
	require.Panics(t, func() { sys.Clock().AfterFunc(time.Second, func() {}) })
	require.Zero(t, sys.Timers())
	timer := sys.Clock().AfterFunc(time.Second, func() {})
	require.Equal(t, 1, sys.Timers())
	require.True(t, timer.Stop())
}

func TestSeeded_RunsWhatTurnsSubmit(t *testing.T) {
	s := actors.NewSeeded(7)
	ran := 0
	s.Submit(newTask(func() {
		s.SubmitAll([]actors.Task{newTask(func() { ran++ }), newTask(func() { ran++ })})
	}))
	require.Equal(t, 1, s.RunN(1))
	require.Equal(t, 2, s.Pending())
	require.Equal(t, 2, s.RunN(5))
	require.Equal(t, 2, ran)
	require.Zero(t, s.Run())
}

func TestSeeded_ThroughputIsFrom1To8(t *testing.T) {
	s := actors.NewSeeded(7)
	seen := map[int]bool{}
	for range 1_000 {
		seen[s.Throughput()] = true
	}
	require.Len(t, seen, 8)
	require.True(t, seen[1] && seen[8])
}

// A turn that waits has the others run meanwhile, but none of its own actor.
func TestSeeded_RunsOtherTurnsInsideATurn(t *testing.T) {
	sys, seeded := newSeeded(t, actors.SystemConfig{})
	var j journal
	a := spawnProbe(sys, &probe{journal: &j, name: "a"}, actors.Options{})
	b := spawnProbe(sys, &probe{journal: &j, name: "b"}, actors.Options{})
	seeded.Run()
	j.take()
	a.Tell(run("waits", func(*actors.Context) {
		b.Tell(say("works"))
		a.Tell(say("comes later"))
		seeded.Run()
		j.note("a has waited")
	}))
	seeded.Run()
	require.Equal(t, "a got waits; b got works; a has waited; a got comes later", j.take())
}

// A turn may take long: a call on another goroutine waits for its end, and then goes on.
func TestSeeded_WaitsForATurnOfAnotherGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, hold := actors.NewSeeded(7), make(chan struct{})
		var begun atomic.Int32
		for range 2 {
			s.Submit(newTask(func() { begun.Add(1); <-hold }))
		}
		var calls sync.WaitGroup
		calls.Go(func() { s.RunN(1) })
		calls.Go(func() { s.RunN(1) })
		synctest.Wait()
		require.EqualValues(t, 1, begun.Load())
		close(hold)
		calls.Wait()
		require.EqualValues(t, 2, begun.Load())
	})
}

func TestSeeded_RunsOneTurnAtATime(t *testing.T) {
	s := actors.NewSeeded(7)
	ran := 0 // without a lock: -race finds turns that overlap
	for range 1_000 {
		s.Submit(newTask(func() { ran++ }))
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { s.Run() })
	}
	wg.Wait()
	require.Equal(t, 1_000, ran)
}
