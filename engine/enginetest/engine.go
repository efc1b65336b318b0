package enginetest

import (
	"cmp"
	"errors"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/engine"
)

// Engine is an engine for a test: its calls use the test's context and fail the
// test, at once, on an error. So they must be made from the test's goroutine;
// others use [Engine.Engine].
type Engine[T any] struct {
	t        testing.TB
	engine   *engine.Engine[T]
	host     *engine.Host
	options  Options
	clock    *VirtualClock  // nil unless deterministic
	executor *actors.Seeded // likewise
}

// New starts an engine that is closed and checked for leaks when the test ends;
// see the package's documentation. A host in cfg is not closed, and its actors and
// timers are not checked: call [CheckLeaks]. A [Source] in cfg is closed with the
// engine. Without a backend and FirstRevision in cfg, revisions start at 1, so that
// failures show small ones. Without a host and FreshnessTimeout, an engine that is not
// deterministic waits for a revision for up to 9 s, since the machine of a test may pause.
func New[T any](t testing.TB, cfg engine.Config[T]) *Engine[T] {
	t.Helper()
	return NewWith(t, cfg, Options{})
}

// NewWith is New with options.
func NewWith[T any](t testing.TB, cfg engine.Config[T], opts Options) *Engine[T] {
	t.Helper()
	e := &Engine[T]{t: t, options: opts}
	before := goleak.IgnoreCurrent()
	shared := cfg.Host != nil
	if problem := opts.problem(shared); problem != "" {
		t.Fatal("enginetest: Options." + problem)
	}
	if !shared {
		cfg.Host = e.newHost()
		cfg.FreshnessTimeout = cmp.Or(cfg.FreshnessTimeout, e.freshnessTimeout())
	}
	e.host = cfg.Host
	if cfg.Backend == nil {
		cfg.FirstRevision = cmp.Or(cfg.FirstRevision, 1)
	}
	cfg.DetectMutations = !e.options.AllowMutations
	cfg.OnError = failOnMutation(t, cfg.OnError)
	cfg.OnEnd = withoutMarkers(cfg.OnEnd)
	var err error
	if e.engine, err = engine.New(cfg); err != nil {
		if !shared {
			err = errors.Join(err, e.host.Close())
		}
		t.Fatalf("enginetest: engine.New: %v", err)
	}
	t.Cleanup(func() {
		t.Helper()
		e.close(cfg, shared)
		if !e.options.AllowGoroutines {
			checkGoroutines(t, before)
		}
	})
	return e
}

// freshnessTimeout returns how long an engine waits for a revision whose configuration leaves that
// open: on the real clock for longer than in production, since the machine of a test may pause.
func (e *Engine[T]) freshnessTimeout() time.Duration {
	if e.options.Deterministic {
		return engine.DefaultFreshnessTimeout
	}
	return settleTimeout - time.Second // it says more than the end of an expectation's time
}

// newHost makes the host of an engine that is given none.
func (e *Engine[T]) newHost() *engine.Host {
	e.t.Helper()
	cfg := engine.HostConfig{CloseTimeout: e.options.CloseTimeout, Logger: slog.New(slog.DiscardHandler)}
	if e.options.Deterministic {
		e.clock, e.executor = NewVirtualClock(), actors.NewSeeded(e.options.Seed)
		// Zero would draw a seed.
		cfg.Clock, cfg.Executor, cfg.Seed = e.clock, e.executor, e.options.Seed|1<<63
	}
	host, err := engine.NewHost(cfg)
	if err != nil {
		e.t.Fatalf("enginetest: engine.NewHost: %v", err)
	}
	return host
}

// failOnMutation returns the engine's OnError: it fails the test for a mutation, and
// passes all errors to next.
func failOnMutation(t testing.TB, next func(error)) func(error) {
	return func(err error) {
		if errors.Is(err, engine.ErrMutated) {
			t.Errorf("enginetest: %v", err)
		}
		if next != nil {
			next(err)
		}
	}
}

// withoutMarkers returns the engine's OnEnd: it passes the ends of the test's own watches to next.
func withoutMarkers(next func(engine.WatchEnd)) func(engine.WatchEnd) {
	if next == nil {
		return nil
	}
	return func(end engine.WatchEnd) {
		if end.Name != marker {
			next(end)
		}
	}
}

// close closes the engine and reports what it leaves behind.
func (e *Engine[T]) close(cfg engine.Config[T], shared bool) {
	e.t.Helper()
	err := e.engine.Close()
	if source, ok := cfg.Backend.(*Source[T]); ok {
		err = errors.Join(err, source.Close())
	}
	if !shared {
		if err == nil {
			CheckLeaks(e.t, e.host)
		}
		err = errors.Join(err, e.host.Close())
	}
	if err != nil {
		e.t.Errorf("enginetest: the engine does not close; something in it is still running: %v", err)
	}
}

// Engine returns the real engine.
func (e *Engine[T]) Engine() *engine.Engine[T] { return e.engine }

// Host returns the engine's host.
func (e *Engine[T]) Host() *engine.Host { return e.host }

// Advance lets d pass, timer by timer, and runs what each sets off before the
// next one fires. It needs [Options].Deterministic.
func (e *Engine[T]) Advance(d time.Duration) {
	e.t.Helper()
	if e.clock == nil {
		e.t.Fatal("enginetest: Advance needs a virtual clock: give NewWith enginetest.Deterministic(seed)")
	}
	e.executor.Run()
	end := e.clock.Now().Add(d)
	for {
		next, armed := e.clock.Next()
		if !armed || next.After(end) {
			break
		}
		e.clock.Advance(next.Sub(e.clock.Now()))
		e.executor.Run()
	}
	e.clock.Advance(end.Sub(e.clock.Now()))
}
