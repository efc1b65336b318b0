package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/engine"
)

// Nothing is left to chance: what is there is received, though the context is done.
func TestHost_AwaitReceivesWhatIsThereThoughItsContextIsDone(t *testing.T) {
	for name, cfg := range map[string]engine.HostConfig{
		"real":          {},
		"deterministic": {Executor: actors.NewSeeded(1), Clock: clock.NewVirtual(epoch)},
	} {
		t.Run(name, func(t *testing.T) {
			host := hostFor(t, cfg)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			ready := make(chan struct{})
			require.ErrorIs(t, host.Await(ctx, ready), context.Canceled)
			close(ready)
			for range 100 {
				require.NoError(t, host.Await(ctx, ready))
			}
		})
	}
}

// gatedExecutor runs turns once the gate is open.
type gatedExecutor struct{ gate chan struct{} }

func (g gatedExecutor) Submit(t actors.Task) {
	go func() {
		<-g.gate
		t.RunTurn()
	}()
}

func (g gatedExecutor) SubmitAll(tasks []actors.Task) {
	for _, t := range tasks {
		g.Submit(t)
	}
}

func (gatedExecutor) Throughput() int { return 1 }

// The host is closed after New has asked for the engine's first actor, and before that is
// there.
func TestNew_FailsOnAHostThatIsClosedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		executor := gatedExecutor{make(chan struct{})}
		host, err := engine.NewHost(engine.HostConfig{Executor: executor})
		require.NoError(t, err)
		config := cfg()
		config.Host = host
		opened, closed := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := engine.New(config)
			opened <- err
		}()
		synctest.Wait()
		go func() { closed <- host.Close() }()
		synctest.Wait()
		close(executor.gate)
		require.ErrorIs(t, <-opened, engine.ErrEngineClosed)
		require.NoError(t, <-closed)
	})
}

// The only worker, as on a machine with one processor, runs the handler that starts the engine.
func TestNew_NeedsNoWorkerOfItsHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, err := engine.NewHost(engine.HostConfig{Workers: 1})
		require.NoError(t, err)
		config := cfg()
		config.Host = host
		outer, err := engine.New(config)
		require.NoError(t, err)
		opened := make(chan *engine.Engine[pod], 1)
		_, err = outer.Handle(t.Context(), engine.WatchOptions{OnPool: true}, func(engine.Event[pod]) {
			wrong := config
			wrong.Backoff.Initial = -1
			_, err := engine.New(wrong)
			assert.ErrorIs(t, err, engine.ErrConfig)
			inner, err := engine.New(config)
			assert.NoError(t, err)
			opened <- inner
		})
		require.NoError(t, err)
		_, err = outer.Create(t.Context(), pod{Name: "a"})
		require.NoError(t, err)
		synctest.Wait()
		require.Len(t, opened, 1, "New waits for the worker that calls it")
		inner := <-opened
		require.NoError(t, inner.WaitReady(t.Context()))
		require.NoError(t, inner.Close())
		require.NoError(t, outer.Close())
		require.NoError(t, host.Close())
	})
}

// actorlessClock is a clock that panics when an actor reads it.
type actorlessClock struct{ clock.Clock }

func (c actorlessClock) Now() time.Time {
	if actors.InTurn() {
		panic("not for actors")
	}
	return c.Clock.Now()
}

// prompt is an executor that is idle again when a Submit from outside of its turns returns.
type prompt struct{ *actors.Blocking }

func (p prompt) Submit(t actors.Task) {
	p.Blocking.Submit(t)
	if !actors.InTurn() {
		synctest.Wait()
	}
}

func TestNew_FailsIfTheClockPanics(t *testing.T) {
	for name, executor := range map[string]actors.Executor{"pool": nil, "actors fail before New looks": prompt{actors.NewBlocking()}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var failures atomic.Int32
				host, err := engine.NewHost(engine.HostConfig{
					Clock: actorlessClock{clock.Real()}, Executor: executor, OnFailure: func(engine.Failure) { failures.Add(1) },
				})
				require.NoError(t, err)
				defer func() { require.NoError(t, host.Close()) }()
				config := cfg()
				config.Host = host
				_, err = engine.New(config)
				require.ErrorContains(t, err, "could not be started")
				require.NoError(t, host.Close())
				require.Positive(t, failures.Load())
				require.Zero(t, host.Actors())
			})
		})
	}
}
