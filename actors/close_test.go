package actors_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/usercode"
)

func TestSystem_ConfigErrorsNameTheFieldAndTheFix(t *testing.T) {
	_, err := actors.NewSystem(actors.SystemConfig{Workers: -1})
	require.ErrorIs(t, err, usercode.ErrConfig)
	require.EqualError(t, err, "invalid configuration: Workers is negative; use 0 for GOMAXPROCS, or the number of workers")
	_, err = actors.NewSystem(actors.SystemConfig{Workers: 1, Executor: actors.NewSeeded(1)})
	var config *usercode.ConfigError
	require.ErrorAs(t, err, &config)
	require.Equal(t, "Workers", config.Field)
}

func TestSystem_StartsAndClosesEmptyWithoutLeaks(t *testing.T) {
	for range 20 {
		newSystem(t, actors.SystemConfig{}) // and goleak in TestMain
	}
}

// A second Shutdown of protoactor panics.
func TestClose_IsIdempotentAndConcurrent(t *testing.T) {
	sys := newSystem(t, actors.SystemConfig{})
	var wg sync.WaitGroup
	spawnCounters(t, sys, 100, &wg)
	for range 8 {
		wg.Go(func() {
			if err := sys.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.Zero(t, sys.Actors())
	require.NoError(t, sys.Close(context.Background()))
}

func TestClose_NamesTheActorThatBlocksAndCanBeCalledAgain(t *testing.T) {
	sys := newSystem(t, actors.SystemConfig{})
	j := new(journal)
	entered, leave := make(chan struct{}), make(chan struct{})
	p := &probe{journal: j, name: "parent", hooks: map[string]func(*actors.Context){"started": func(ctx *actors.Context) {
		ref := spawnProbe(ctx, &probe{journal: j, name: "child"}, actors.Options{Executor: ctx.System().Blocking()})
		ref.Tell(run("block", func(*actors.Context) { close(entered); <-leave }))
	}}}
	spawnProbe(sys, p, actors.Options{})
	<-entered
	reason := errors.New("no patience")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(reason)
	err := sys.Close(ctx)
	require.ErrorIs(t, err, actors.ErrStillRunning)
	require.ErrorIs(t, err, reason)
	var still *actors.StillRunningError
	require.ErrorAs(t, err, &still)
	require.Contains(t, still.Busy, "parent/child")
	require.Zero(t, still.Wakers)

	close(leave)
	require.NoError(t, sys.Close(context.Background()))
	require.Contains(t, j.take(), "child stopping; child stopped; parent lost a child; parent stopped")
}

// It is not counted any more then, but Close waits for it.
func TestClose_NamesTheActorWhoseStoppedBlocks(t *testing.T) {
	sys := newSystem(t, actors.SystemConfig{})
	p := newPause(t)
	ref := spawnProbe(sys, &probe{journal: new(journal), name: "a", hooks: map[string]func(*actors.Context){
		"stopped": func(*actors.Context) { p.turn() },
	}}, actors.Options{Executor: sys.Blocking()})
	settle(t, ref)
	ref.Stop()
	<-p.entered
	require.Zero(t, sys.Actors())
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range []error{sys.Close(over), ref.StillRunning(over.Err())} {
		require.EqualError(t, err, "actors still running (in a turn: a): context canceled")
	}
	p.release()
	require.NoError(t, sys.Close(t.Context()))
}

func TestClose_OfASeededSystemRunsNothingOnceItsContextIsDone(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		sys, _ := newSeeded(t, actors.SystemConfig{})
		spawnProbe(sys, &probe{journal: new(journal), name: "a"}, actors.Options{})
		require.ErrorIs(t, sys.Close(over), actors.ErrStillRunning)
		require.Equal(t, []string{"a"}, sys.Names())
	}
}

func TestStillRunningError_Text(t *testing.T) {
	err := &actors.StillRunningError{
		Busy: []string{"pods/reflector"}, Waiting: []string{"pods"}, Wakers: 3, Cause: context.DeadlineExceeded,
	}
	require.EqualError(t, err, "actors still running (in a turn: pods/reflector; waiting: pods; 3 wake actors): context deadline exceeded")
	require.EqualError(t, &actors.StillRunningError{Cause: context.DeadlineExceeded}, "actors still running: context deadline exceeded")
}

func TestClose_CountsWakeActorsThatAreLeft(t *testing.T) {
	sys := newSystem(t, actors.SystemConfig{})
	entered, leave := make(chan struct{}), make(chan struct{})
	s := &recordingWaker{journal: new(journal), woken: func(*actors.Context) bool { close(entered); <-leave; return false }}
	hub := actors.Spawn(sys, "hub", newRunner, actors.Options{})
	hub.Tell(func(ctx *actors.Context) {
		require.NoError(t, actors.SpawnWake(ctx, s, &s.WakeBox, ctx.System().Blocking()))
		s.Wake()
	})
	<-entered
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var still *actors.StillRunningError
	require.ErrorAs(t, sys.Close(ctx), &still)
	require.Equal(t, 1, still.Wakers)
	close(leave)
}

func TestClose_NothingIsSpawnedAfterIt(t *testing.T) {
	sys := newSystem(t, actors.SystemConfig{})
	require.NoError(t, sys.Close(context.Background()))
	j := new(journal)
	ref := spawnProbe(sys, &probe{journal: j, name: "late"}, actors.Options{})
	require.Equal(t, actors.Gone, ref.Offer(say("1")))
	require.False(t, ref.Tell(say("1")))
	ref.Stop()
	require.Empty(t, j.take())
	require.Zero(t, sys.Actors())
}

// It ends like an actor that is stopped before its first turn: by the time Stopped is called, it is not counted.
func TestClose_AnActorNotYetSpawnedDropsItsMessages(t *testing.T) {
	sys, _ := newSeeded(t, actors.SystemConfig{})
	p := &probe{journal: new(journal), name: "a"}
	counted := -1
	ref := actors.Spawn(sys, "a", func() actors.Behavior[do] {
		return &endedProbe{p, func() { counted = sys.Actors() }}
	}, actors.Options{})
	ref.Tell(say("1"))
	require.NoError(t, sys.Close(context.Background()))
	require.Equal(t, "a dropped 1; a stopped", p.take())
	require.Zero(t, counted)
	require.False(t, ref.Alive())
}

// endedProbe is a probe whose Stopped calls a function.
type endedProbe struct {
	*probe
	ended func()
}

func (p *endedProbe) Stopped(ctx *actors.Context) {
	p.ended()
	p.probe.Stopped(ctx)
}

func TestClose_WhileActorsAreSpawned(t *testing.T) {
	for range 20 {
		sys := newSystem(t, actors.SystemConfig{})
		var total tallies
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 20 {
					ref := actors.Spawn(sys, "a", total.newTally, actors.Options{})
					total.sent(ref.Offer(1))
				}
			})
		}
		wg.Go(func() { _ = sys.Close(context.Background()) })
		wg.Wait()
		require.NoError(t, sys.Close(context.Background()))
		require.Zero(t, sys.Actors())
		require.Equal(t, total.accepted, total.handled())
	}
}

// tallies counts the messages accepted, and those received or dropped, by many
// actors.
type tallies struct {
	mu       sync.Mutex
	accepted int
	made     []*tally
}

func (ts *tallies) newTally() actors.Behavior[int] {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t := new(tally)
	ts.made = append(ts.made, t)
	return t
}

func (ts *tallies) sent(v actors.Verdict) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if v == actors.Accepted {
		ts.accepted++
	}
}

func (ts *tallies) handled() (n int) {
	for _, t := range ts.made {
		n += t.received + t.dropped
	}
	return n
}

func TestClose_RunsASeededExecutor(t *testing.T) {
	sys, seeded := newSeeded(t, actors.SystemConfig{})
	j := new(journal)
	ref := spawnProbe(sys, &probe{journal: j, name: "a"}, actors.Options{})
	seeded.Run()
	ref.Tell(say("1"))
	require.NoError(t, sys.Close(context.Background()))
	require.Equal(t, "a started; a stopping; a dropped 1; a stopped", j.take())
}

func TestClose_FromATurnEndsWithItsContext(t *testing.T) {
	for _, executor := range []actors.Executor{nil, actors.NewSeeded(1)} {
		sys := newSystem(t, actors.SystemConfig{Executor: executor})
		closed := make(chan error, 1)
		ref := spawnProbe(sys, &probe{journal: new(journal), name: "a"}, actors.Options{})
		ref.Tell(run("close", func(ctx *actors.Context) {
			c, cancel := context.WithCancel(context.Background())
			cancel()
			closed <- ctx.System().Close(c)
		}))
		if seeded, ok := executor.(*actors.Seeded); ok {
			seeded.Run()
		}
		require.ErrorIs(t, <-closed, actors.ErrStillRunning)
	}
}

func TestSystem_CountsItsTimers(t *testing.T) {
	var fs failures
	clock := clock.NewVirtual(start)
	sys, _ := newSeeded(t, actors.SystemConfig{Clock: clock, OnFailure: fs.add})
	one := sys.Clock().AfterFunc(1, func() {})
	two := sys.Clock().AfterFunc(2, func() {})
	sys.Clock().AfterFunc(3, func() { panic("late") })
	require.Equal(t, 3, sys.Timers())
	require.True(t, two.Stop())
	require.False(t, two.Stop())
	require.Equal(t, 2, sys.Timers())
	clock.Advance(1)
	require.Equal(t, 1, sys.Timers())
	require.False(t, one.Stop(), "it has fired")
	require.Equal(t, 1, sys.Timers())
	clock.Advance(2)
	require.Zero(t, sys.Timers())
	require.Equal(t, "timer: late: Resume", fs.take(), "a panic in a timer is contained")
}

// begunClock is a clock whose timers have all begun, and have not come to their functions.
type begunClock struct {
	clock.Clock
	functions []func()
}

func (c *begunClock) AfterFunc(_ time.Duration, f func()) clock.Timer {
	c.functions = append(c.functions, f)
	return begunTimer{}
}

// begunTimer is stopped too late.
type begunTimer struct{}

func (begunTimer) Stop() bool { return false }

// A timer that begins while it is stopped is not one that is left when everything has ended.
func TestSystem_DoesNotCountATimerThatWasStoppedTooLate(t *testing.T) {
	begun := &begunClock{Clock: clock.Real()}
	sys, _ := newSeeded(t, actors.SystemConfig{Clock: begun})
	called := 0
	timer := sys.Clock().AfterFunc(time.Second, func() { called++ })
	require.Equal(t, 1, sys.Timers())
	for range 2 {
		require.False(t, timer.Stop())
		require.Zero(t, sys.Timers())
	}
	begun.functions[0]()
	require.Equal(t, 1, called)
	require.Zero(t, sys.Timers())
}

// That everything has ended does not depend on the context, nor on chance.
func TestClose_OfAClosedSystemSucceedsThoughItsContextIsDone(t *testing.T) {
	sys := newSystem(t, actors.SystemConfig{})
	require.NoError(t, sys.Close(t.Context()))
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		require.NoError(t, sys.Close(over))
		require.NoError(t, actors.NewBlocking().Close(over))
	}
}

// A turn of another system may close it again: there is nothing that it would have to wait for.
func TestClose_OfAClosedSystemSucceedsInATurn(t *testing.T) {
	sys := newSystem(t, actors.SystemConfig{})
	require.NoError(t, sys.Close(t.Context()))
	other, closed := newSystem(t, actors.SystemConfig{}), make(chan error, 1)
	ref := spawnProbe(other, &probe{journal: new(journal), name: "a"}, actors.Options{})
	ref.Tell(run("close", func(*actors.Context) { closed <- sys.Close(context.Background()) }))
	require.NoError(t, <-closed)
}
